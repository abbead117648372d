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

from backend_transformers import backend

CONFIG = """
backend: "transformers"
parameters { key: "context" value { string_value: "256" } }
parameters { key: "slots" value { string_value: "4" } }
parameters { key: "threads" value { string_value: "1" } }
parameters { key: "device" value { string_value: "cpu" } }
"""
WORDS = (
    "Once upon a time there was a small town between two rivers, and every evening a bell rang. "
)
SPECIAL = ("<unk>", "<s>", "</s>", "<|im_start|>", "<|im_end|>")
_TOKENS = 320


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


def causal_model(folder: Path, **changes: Any) -> None:
    """Write a model of the class LlamaForCausalLM with random weights, and its tokenizer.

    changes   fields of its LlamaConfig
    """
    import torch
    from transformers import LlamaConfig, LlamaForCausalLM

    tokenizer(folder)
    torch.manual_seed(5)
    config = LlamaConfig(
        **{
            "vocab_size": _TOKENS,
            "hidden_size": 64,
            "intermediate_size": 96,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "max_position_embeddings": 1024,
            "bos_token_id": 1,
            "eos_token_id": 2,
            "initializer_range": 0.4,  # so large that the next token differs from place to place
            **changes,
        }
    )
    model = LlamaForCausalLM(config)
    with torch.no_grad():
        model.lm_head.weight[: len(SPECIAL)] *= 0.1  # no text ends soon
    model.save_pretrained(folder)


def encoder(folder: Path, kind: str, **changes: Any) -> Any:
    """Write a model of a class of BERT with random weights, and its tokenizer. Return the model.

    changes   fields of its BertConfig
    """
    import torch
    import transformers

    tokenizer(folder, pairs=True)
    torch.manual_seed(5)
    shape = {"hidden_size": 32, "intermediate_size": 48, "num_hidden_layers": 2}
    more = {"num_attention_heads": 4, "max_position_embeddings": 512, "initializer_range": 0.3}
    config = transformers.BertConfig(vocab_size=_TOKENS, pad_token_id=0, **shape, **more, **changes)
    model = getattr(transformers, kind)(config).eval()
    model.save_pretrained(folder)
    return model


def ranker(folder: Path, query: str) -> None:
    """Write a model that gives the text `query` a higher score for itself than other texts."""
    import torch
    from transformers import AutoTokenizer

    model = encoder(folder, "BertForSequenceClassification", num_labels=1)
    words = AutoTokenizer.from_pretrained(folder)
    documents = [query, WORDS, "0 1 2 3", "- - -", "a"]
    given = words([query] * len(documents), documents, padding=True, return_tensors="pt")
    wanted = torch.tensor([1.0, 0.0, 0.0, 0.0, 0.0])
    steps = torch.optim.Adam(model.parameters(), 1e-3)
    for _ in range(60):
        steps.zero_grad()
        scores = model(**given).logits[:, 0]
        torch.nn.functional.binary_cross_entropy_with_logits(scores, wanted).backward()
        steps.step()
    model.save_pretrained(folder)


def tokenizer(folder: Path, pairs: bool = False) -> None:
    """Write a small tokenizer of bytes and of pieces of WORDS.

    pairs   whether it marks the begin, middle and end of pairs of texts
    """
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, processors, trainers
    from transformers import PreTrainedTokenizerFast

    found = Tokenizer(models.BPE())
    found.pre_tokenizer = pre_tokenizers.ByteLevel(add_prefix_space=False)
    found.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=_TOKENS,
        special_tokens=list(SPECIAL),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    found.train_from_iterator([WORDS], trainer)
    if pairs:
        found.post_processor = processors.TemplateProcessing(
            single="<s> $A </s>",
            pair="<s> $A </s> $B:1 </s>:1",
            special_tokens=[("<s>", 1), ("</s>", 2)],
        )
    whole = PreTrainedTokenizerFast(
        tokenizer_object=found,
        unk_token="<unk>",
        pad_token="<unk>",
        bos_token="<s>",
        eos_token="</s>",
        model_input_names=["input_ids", "attention_mask", *(["token_type_ids"] if pairs else [])],
    )
    whole.save_pretrained(folder)
