"""One network of PyTorch, saved in four ways, is served with one answer."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest
from sklearn import datasets

import core

EXAMPLES = Path(__file__).parents[2] / "examples"
DATA = datasets.load_digits()
IMAGES = DATA.images[1500:].astype(np.float32)
MODELS = {
    "convolution_torchscript": "probabilities__0",
    "convolution_exported": "OUTPUT__0",
    "convolution_onnx": "probabilities",
    "convolution_openvino": "probabilities",
}


@pytest.fixture(scope="module")
def answers(tmp_path_factory):
    """Model → its probabilities of all digits that it was not trained with."""
    folder = tmp_path_factory.mktemp("convolution") / "models"
    script = EXAMPLES / "make_convolution.py"
    spec = importlib.util.spec_from_file_location("make_convolution", script)
    made = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(made)  # with its name, which becomes part of the program
    made.main(folder)
    with core.Server(model_repository=str(folder)) as server:
        return {
            model: np.concatenate(
                [
                    server.infer(model, {"pixels": IMAGES[i : i + 4]})[output]
                    for i in range(0, len(IMAGES), 4)
                ]
            )
            for model, output in MODELS.items()
        }


def test_digits_are_classified(answers):
    found = answers["convolution_torchscript"].argmax(1)

    assert (found == DATA.target[1500:]).mean() > 0.87


@pytest.mark.parametrize(
    "model", ["convolution_exported", "convolution_onnx", "convolution_openvino"]
)
def test_every_way_gives_the_same_answer(answers, model):
    np.testing.assert_allclose(
        answers[model], answers["convolution_torchscript"], rtol=1e-3, atol=1e-5
    )
