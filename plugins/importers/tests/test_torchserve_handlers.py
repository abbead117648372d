"""The handlers of TorchServe in the stand-in, with small networks of torch."""

import base64
import io
import json

import import_sources as archives
import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="torch is not installed")
image = pytest.importorskip("PIL.Image", reason="pillow is not installed")

# Mean and deviation of ImageNet, by which images are normalised.
MEAN, DEVIATION = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]


OWN = """
from ts.torch_handler.image_classifier import ImageClassifier


class Own(ImageClassifier):
    topk = 4
"""


class Means(torch.nn.Module):
    """The mean of each channel, and their sum: four classes."""

    def forward(self, x):
        means = x.mean(dim=[2, 3])
        return torch.cat([means, means.sum(dim=1, keepdim=True)], dim=1)


class Pixels(torch.nn.Module):
    def forward(self, x):
        return {"out": torch.cat([x[:, :1], -x[:, :1]], dim=1)}


class Boxes(torch.nn.Module):
    def forward(self, x) -> list[dict[str, torch.Tensor]]:
        scores = torch.tensor([0.9, 0.2]) * x.amax()
        boxes = torch.tensor([[0.0, 1.0, 2.0, 3.0], [4.0, 5.0, 6.0, 7.0]])
        return [{"boxes": boxes, "labels": torch.tensor([1, 2]), "scores": scores}]


@pytest.fixture
def archive(tmp_path):
    """Write an archive of a network as TorchScript, with a handler of TorchServe."""

    def archive(network, handler, files=None, **model):
        buffer = io.BytesIO()
        torch.jit.save(torch.jit.script(network.eval()), buffer)
        files = {"net.pt": buffer.getvalue(), **(files or {})}
        settings = {"handler": handler, "serializedFile": "net.pt", **model}
        return archives.mar(tmp_path / "net.mar", files, settings)

    return archive


def picture(color, size=(300, 280)):
    buffer = io.BytesIO()
    image.new("RGB", size, color).save(buffer, "PNG")
    return buffer.getvalue()


def test_image_classifier_prepares_images_and_names_classes(archive, imported, served):
    names = json.dumps({"0": ["n1", "red"], "1": "green", "2": "blue", "3": "all"})
    files = {
        "index_to_name.json": names,
        "model-config.yaml": "batchSize: 2",
        "handler.py": OWN,
    }
    imported(archive(Means(), "handler.py", files, configFile="model-config.yaml"))

    server = served("net")
    colors = [(255, 0, 0), (10, 200, 30)]
    rows = np.array([[picture(each)] for each in colors], object)
    answers = server.ask({"data": rows}, name="net")["output"].ravel()
    encoded = np.array([[base64.b64encode(picture(colors[0]))]], object)
    for answer, color in zip(map(json.loads, answers), colors, strict=True):
        means = (np.array(color) / 255 - MEAN) / DEVIATION
        scores = torch.softmax(torch.tensor([*means, means.sum()]), 0).tolist()
        expected = dict(zip(["red", "green", "blue", "all"], scores, strict=True))
        assert answer == pytest.approx(expected, abs=1e-5)
        assert list(answer) == sorted(expected, key=expected.get, reverse=True)
    request = server.answer({"data": encoded}, name="net")
    assert "cannot identify image file" in request.message  # base64 is text, and this is bytes


def test_image_segmenter_gives_class_and_probability_of_pixels(archive, imported, served):
    imported(archive(Pixels(), "image_segmenter"))

    data = np.array([picture((255, 255, 255))], object)
    answer = np.array(json.loads(served("net").ask({"data": data}, name="net")["output"][0]))

    value = (1 - MEAN[0]) / DEVIATION[0]
    assert answer.shape == (224, 224, 2)
    assert set(answer[..., 0].ravel()) == {0.0}
    np.testing.assert_allclose(answer[..., 1], 1 / (1 + np.exp(-2 * value)), rtol=1e-5)


def test_object_detector_gives_the_boxes_above_its_threshold(archive, imported, served):
    names = {"index_to_name.json": json.dumps({"object_type_names": ["none", "cat", "dog"]})}
    imported(archive(Boxes(), "object_detector", names))

    data = np.array([picture((255, 255, 255))], object)
    answer = json.loads(served("net").ask({"data": data}, name="net")["output"][0])

    assert answer == [{"cat": [0.0, 1.0, 2.0, 3.0], "score": pytest.approx(0.9)}]


def test_base_handler_takes_json(archive, imported, served):
    network = torch.nn.Linear(3, 2)
    report = imported(archive(network, "base_handler"))

    assert 'backend: "pytorch"' in report
    data = np.array([b"[1.0, 2.0, 3.0]"], object)
    answer = json.loads(served("net").ask({"data": data}, name="net")["output"][0])
    expected = network(torch.tensor([1.0, 2.0, 3.0])).tolist()
    assert answer == pytest.approx(expected, rel=1e-6)
