"""The contracts of engines and backends with tiny models: python -m core_testing transformers

The models have random weights and are made anew for each test.
"""

from __future__ import annotations

from io import BytesIO
from pathlib import Path
from typing import Any, ClassVar

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
from PIL import Image

from backend_transformers import backend

CONFIG = """
backend: "transformers"
parameters { key: "context" value { string_value: "256" } }
parameters { key: "slots" value { string_value: "16" } }
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
        return Example(
            backend, tmp_path, {"text_input": _texts(*texts)}, _classes(scores), config=CONFIG
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


class TestWithImages(BackendConformance):
    supports: ClassVar[set[str]] = set()
    loads = 10

    @pytest.fixture
    def example(self, tmp_path: Path) -> Example:
        """A model that classifies images."""
        torch = pytest.importorskip("torch", reason="transformers runs the model with it")
        pytest.importorskip("transformers", reason="transformers runs the model")
        model, processor = image_classifier(tmp_path)
        images = [drawn(48, 32), drawn(20, 60)]
        with torch.no_grad():
            scores = model(**processor(images=images, return_tensors="pt")).logits.numpy()
        files = np.array([file_of(each) for each in images], object)
        return Example(
            backend,
            tmp_path,
            {"image": files},
            _classes(scores),
            config=CONFIG,
            failing={"image": _texts("no image", "no image")},
        )


def image_classifier(folder: Path, **changes: Any) -> tuple[Any, Any]:
    """Write a model of the class ViTForImageClassification with random weights, and its image processor.

    It resizes images to 32 x 32 pixels. Return both.
    changes   fields of its ViTConfig
    """
    import torch
    import transformers

    torch.manual_seed(5)
    config = transformers.ViTConfig(
        **{
            "image_size": 32,
            "patch_size": 8,
            "hidden_size": 32,
            "intermediate_size": 48,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "id2label": {0: "LABEL_0", 1: "LABEL_1", 2: "LABEL_2"},
            "initializer_range": 0.3,
            **changes,
        }
    )
    model = transformers.ViTForImageClassification(config).eval()
    model.save_pretrained(folder)
    processor = transformers.ViTImageProcessorPil(size={"height": 32, "width": 32})
    processor.save_pretrained(folder)
    return model, processor


def drawn(width: int, height: int) -> Any:
    """Return an image in RGB, with other colours at each side."""
    x, y = np.meshgrid(np.linspace(0, 255, width), np.linspace(0, 255, height))
    return Image.fromarray(np.stack([x, y, 255 - x], -1).astype(np.uint8))


def file_of(image: Any, form: str = "PNG", **more: Any) -> bytes:
    """Return an image as the content of a file.

    more   arguments of Pillow's `save`
    """
    file = BytesIO()
    image.save(file, form, **more)
    return file.getvalue()


def _classes(logits: Any) -> dict[str, Any]:
    """Return the outputs of the task "classify" for FP32[rows, 3]."""
    scores = np.exp(logits) / np.exp(logits).sum(1, keepdims=True)
    order = np.argsort(-scores, 1)
    labels = np.array([b"LABEL_0", b"LABEL_1", b"LABEL_2"], object)[order]
    values = np.take_along_axis(scores, order, 1)
    return {
        "label": labels[:, 0],
        "score": values[:, 0],
        "scores": scores,
        "top_labels": labels,
        "top_scores": values,
    }


def _texts(*texts: str) -> np.ndarray:
    return np.array([each.encode() for each in texts], object)


def _read(folder: Path, text: str) -> Any:
    """Return the inputs of a model of transformers for a text."""
    from transformers import AutoTokenizer

    return AutoTokenizer.from_pretrained(folder)(text, return_tensors="pt")
