"""The contract of engines with a tiny model: python -m core_testing transformers

The model has random weights and is made anew for each test.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest
from core_testing.engines import EngineConformance, EngineExample

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


def tokenizer(folder: Path) -> None:
    """Write a small tokenizer of bytes and of pieces of WORDS."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers
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
    whole = PreTrainedTokenizerFast(
        tokenizer_object=found, unk_token="<unk>", bos_token="<s>", eos_token="</s>"
    )
    whole.save_pretrained(folder)
