"""The contract of backends with a tiny model, which loads at once and needs no package."""

import numpy as np
import pytest
from backend_openvino_genai import backend
from core_testing import BackendConformance, Example
from tiny_model import write_tiny_model

pytest.importorskip("openvino_genai", reason="OpenVINO GenAI runs the model")

CONFIG = """
backend: "openvino_genai"
parameters { key: "threads" value { string_value: "1" } }
"""


def asked(choice, **more):
    structure = f'{{"structured_outputs": {{"choice": ["{choice}"]}}, "temperature": 0}}'
    inputs = {"text_input": text("ab"), "sampling_parameters": text(structure)}
    return {**inputs, **{name: np.array([value]) for name, value in more.items()}}


def text(found):
    return np.array([found.encode()], object)


class TestBackend(BackendConformance):
    supports = {"streaming"}
    loads = 20
    # The task of a request decides which inputs it needs, so all are optional in the configuration.
    test_a_missing_input_never_reaches_execute = None

    @pytest.fixture
    def example(self, tmp_path):
        """A request with one answer, which most tests need."""
        write_tiny_model(tmp_path / "model.gguf")
        return Example(backend, tmp_path, asked("hello"), {"text_output": text("abhello")}, CONFIG)

    @pytest.fixture
    def stream_example(self, tmp_path):
        write_tiny_model(tmp_path / "model.gguf")
        pieces = [{"text_output": text(each)} for each in (*"hello", "")]
        return Example(backend, tmp_path, asked("hello", stream=True), pieces, CONFIG)

    def test_it_shows_the_memory_of_the_weights_and_of_the_cache(self, served, example, tmp_path):
        served.ask(example.inputs)

        (found,) = served.statistics()["memory_usage"]
        weights = (tmp_path / "model.gguf").stat().st_size
        assert found["type"] == "CPU"
        assert int(found["byte_size"]) > weights
