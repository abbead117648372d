"""The contracts of engines and backends with tiny models: python -m core_testing transformers

The models have random weights and are made anew for each test.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest
from core_testing import BackendConformance, Example
from core_testing.engines import (
    EmbeddingConformance,
    EngineConformance,
    EngineExample,
    RankConformance,
)
from core_testing.engines.hugging_face import causal_model, encoder, ranker

from backend_transformers import backend

CONFIG = """
backend: "transformers"
parameters { key: "context" value { string_value: "256" } }
parameters { key: "slots" value { string_value: "4" } }
parameters { key: "threads" value { string_value: "1" } }
parameters { key: "device" value { string_value: "cpu" } }
"""


class TestContract(EngineConformance):
    exact = True
    most = 4

    @pytest.fixture
    def engine_example(self, tmp_path: Path) -> EngineExample:
        pytest.importorskip("transformers", reason="transformers runs the model")
        causal_model(tmp_path)
        return EngineExample(backend, tmp_path, "Once upon a time there was", CONFIG)


class TestEmbeddings(EmbeddingConformance):
    @pytest.fixture
    def engine_example(self, tmp_path: Path) -> EngineExample:
        pytest.importorskip("transformers", reason="transformers runs the model")
        encoder(tmp_path, "BertModel")
        return EngineExample(backend, tmp_path, "a small town between two rivers", CONFIG)


class TestRanks(RankConformance):
    @pytest.fixture
    def engine_example(self, tmp_path: Path) -> EngineExample:
        pytest.importorskip("transformers", reason="transformers runs the model")
        query = "a small town between two rivers"
        ranker(tmp_path, query)
        return EngineExample(backend, tmp_path, query, CONFIG)


class TestAsBackend(BackendConformance):
    supports = {"streaming"}
    loads = 10

    @pytest.fixture
    def example(self, tmp_path: Path) -> Example:
        """A model that classifies."""
        torch = pytest.importorskip("torch", reason="transformers runs the model with it")
        pytest.importorskip("transformers", reason="transformers runs the model")
        model = encoder(tmp_path, "BertForSequenceClassification", num_labels=3)
        texts = ["a small town", "every evening a bell rang"]
        with torch.no_grad():
            scores = np.stack([model(**_read(tmp_path, each)).logits[0] for each in texts])
        scores = np.exp(scores) / np.exp(scores).sum(1, keepdims=True)
        best = scores.argmax(1)
        return Example(
            backend,
            tmp_path,
            {"text_input": _texts(*texts)},
            {
                "label": _texts(*(f"LABEL_{each}" for each in best)),
                "score": scores.max(1),
                "scores": scores,
            },
            config=CONFIG,
        )

    @pytest.fixture
    def stream_example(self, tmp_path: Path) -> Example:
        pytest.importorskip("transformers", reason="transformers runs the model")
        causal_model(tmp_path)
        # The structure decides the text, and each letter is a token.
        parameters = '{"temperature": 0, "structured_outputs": {"regex": "0123"}}'
        inputs = {
            "text_input": _texts("Once"),
            "stream": np.array([True]),
            "sampling_parameters": _texts(parameters),
        }
        expected = [{"text_output": _texts(each)} for each in "0123"]
        return Example(backend, tmp_path, inputs, expected, config=CONFIG)


def _texts(*texts: str) -> np.ndarray:
    return np.array([each.encode() for each in texts], object)


def _read(folder: Path, text: str) -> Any:
    """Return the inputs of a model of transformers for a text."""
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(folder)(text, return_tensors="pt")
