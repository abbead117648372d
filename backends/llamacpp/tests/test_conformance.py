"""The contracts of engines: of the small language model, and of tiny models for the tasks embed and rank."""

import pytest
from backend_llamacpp.conformance import CONFIG, backend
from backend_llamacpp.conformance import TestContract as TestContract
from backend_llamacpp.conformance import TestEmbeddings as TestEmbeddings
from core_testing.engines import EmbeddingConformance, EngineExample, RankConformance
from core_testing.engines.cancelling import Cancelling
from core_testing.engines.kit import EngineKit
from gguf_files import POOLING_MEAN, POOLING_RANK, encoder

SLOTS = '"slots" value { string_value: "16" }'


class TestSixteenAtOnce(EngineKit):
    @pytest.fixture
    def engine_example(self, smollm2, tmp_path):
        (tmp_path / "model.gguf").symlink_to(smollm2)
        config = CONFIG.replace('"slots" value { string_value: "4" }', SLOTS)
        assert SLOTS in config
        return EngineExample(backend, tmp_path, "Once upon a time there was", config)

    test_a_cancelled_batch_costs_no_further_step = (
        Cancelling.test_a_cancelled_batch_costs_no_further_step
    )


TEXT = "a small town between two rivers"
TINY = """
backend: "llamacpp"
parameters { key: "threads" value { string_value: "1" } }
"""


class TestEncoders(EmbeddingConformance):
    @pytest.fixture
    def engine_example(self, tmp_path):
        pytest.importorskip("xllamacpp", reason="llama.cpp runs the model")
        (tmp_path / "model.gguf").write_bytes(encoder(POOLING_MEAN))
        return EngineExample(backend, tmp_path, TEXT, TINY)


class TestRanks(RankConformance):
    @pytest.fixture
    def engine_example(self, tmp_path):
        pytest.importorskip("xllamacpp", reason="llama.cpp runs the model")
        (tmp_path / "model.gguf").write_bytes(encoder(POOLING_RANK))
        return EngineExample(backend, tmp_path, TEXT, TINY)
