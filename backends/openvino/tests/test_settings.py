"""The parameters of Triton's OpenVINO backend, and their effect on OpenVINO."""

import numpy as np
import openvino as ov
import openvino.opset13 as op
import pytest
from backend_openvino.settings import settings_of

from core.config import parse_text
from core.errors import CoreError


def read(**parameters):
    text = "".join(
        f'parameters {{ key: "{name}" value {{ string_value: "{value}" }} }}'
        for name, value in parameters.items()
    )
    return settings_of(parse_text(f'name: "m" {text}', "config.pbtxt"))


def test_no_property_is_set_by_default():
    found = read()

    assert (found.device, found.properties) == ("CPU", {})
    assert not (found.fixed_batch or found.pads or found.reshapes)


def test_numbers_hints_and_streams():
    found = read(
        INFERENCE_NUM_THREADS="3",
        COMPILATION_NUM_THREADS="2",
        HINT_BF16="yes",
        NUM_STREAMS="auto",
        PERFORMANCE_HINT="throughput",
    )

    assert found.properties == {
        "INFERENCE_NUM_THREADS": 3,
        "COMPILATION_NUM_THREADS": 2,
        "INFERENCE_PRECISION_HINT": "bf16",
        "NUM_STREAMS": "AUTO",
        "PERFORMANCE_HINT": "THROUGHPUT",
    }


@pytest.mark.parametrize(
    ("name", "value", "expected"),
    [
        ("INFERENCE_NUM_THREADS", "many", "a non-negative number, got many"),
        ("COMPILATION_NUM_THREADS", "-1", "a non-negative number, got -1"),
        ("INFERENCE_NUM_THREADS", "99999999999", "1024 or less, got 99999999999"),
        ("NUM_STREAMS", "20000", "1024 or less, got 20000"),
        ("HINT_BF16", "no", "YES, got no"),
        ("INFERENCE_PRECISION_HINT", "f8", "f32/f16/bf16, got f8"),
        ("NUM_STREAMS", "some", "either AUTO/NUMA/<int_value>, got some"),
        ("PERFORMANCE_HINT", "FAST", "LATENCY/THROUGHPUT/CUMULATIVE_THROUGHPUT, got FAST"),
    ],
)
def test_a_wrong_value_is_refused(name, value, expected):
    with pytest.raises(CoreError) as caught:
        read(**{name: value})

    assert f"expected the parameter '{name}' to be {expected}" in caught.value.message


def with_parameters(**parameters):
    return 'backend: "openvino" max_batch_size: 4 ' + "".join(
        f'parameters {{ key: "{name}" value {{ string_value: "{value}" }} }}'
        for name, value in parameters.items()
    )


X = np.ones((2, 3), np.float32)


def test_openvino_accepts_every_setting(serve, doubled, caplog):
    model = serve(
        doubled(),
        with_parameters(
            INFERENCE_NUM_THREADS="1",
            COMPILATION_NUM_THREADS="1",
            HINT_BF16="YES",
            NUM_STREAMS="1",
            PERFORMANCE_HINT="LATENCY",
            TARGET_DEVICE="cpu",
        ),
    )

    assert model(x=X)["y"].tolist() == (2 * X).tolist()
    assert "has no 'INFERENCE_NUM_THREADS'" not in caplog.text


def test_a_model_computes_in_the_precision_that_it_names(serve, doubled):
    third = np.full((2, 3), 1 / 3, np.float32)
    exact = serve(doubled(), with_parameters(INFERENCE_PRECISION_HINT="F32"))

    assert exact(x=third)["y"].tolist() == (2 * third).tolist()


@pytest.mark.parametrize("device", ["AUTO", "HETERO:CPU", "MULTI:CPU"])
def test_virtual_devices(serve, doubled, device):
    model = serve(doubled(), with_parameters(TARGET_DEVICE=device))

    assert model(x=X)["y"].tolist() == (2 * X).tolist()


def test_a_device_that_is_not_there_is_refused_by_name(serve, doubled):
    with pytest.raises(CoreError, match=r"finds no device 'NPU' here, only CPU") as caught:
        serve(doubled(), with_parameters(TARGET_DEVICE="NPU"))

    assert "'TARGET_DEVICE'" in caught.value.message


def test_a_missing_extension_is_refused_by_name(serve, doubled):
    with pytest.raises(CoreError, match=r"'CPU_EXTENSION_PATH', '/none.so', cannot be loaded"):
        serve(doubled(), with_parameters(CPU_EXTENSION_PATH="/none.so"))


def test_inputs_get_the_dims_of_the_configuration(serve, doubled):
    model = serve(
        doubled(dims=(1, 3)),
        with_parameters(RESHAPE_IO_LAYERS="yes")
        + ' input { name: "x" data_type: TYPE_FP32 dims: -1 }'
        + ' output { name: "y" data_type: TYPE_FP32 dims: -1 }',
    )

    assert model(x=np.ones((2, 5), np.float32))["y"].shape == (2, 5)


def test_dims_that_the_graph_cannot_have_are_refused(serve, model_of):
    weights = np.ones(3, np.float32)
    added = model_of(lambda x: {"y": op.add(x, weights)}, x=(ov.Type.f32, (-1, 3)))

    with pytest.raises(CoreError, match=r"its inputs cannot have the shapes \[\[-1, 5\]\]"):
        serve(
            added,
            with_parameters(RESHAPE_IO_LAYERS="YES")
            + ' input { name: "x" data_type: TYPE_FP32 dims: 5 }'
            + ' output { name: "y" data_type: TYPE_FP32 dims: 5 }',
        )
