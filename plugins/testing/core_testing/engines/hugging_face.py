"""Tiny models of Hugging Face with random weights, as folders, for the tests of engines that read these.

Needs PyTorch, transformers and tokenizers. All texts have the tokens of one tokenizer.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

WORDS = (
    "Once upon a time there was a small town between two rivers, and every evening a bell rang. "
)
SPECIAL = ("<unk>", "<s>", "</s>", "<|im_start|>", "<|im_end|>")
TOKENS = 320


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
            "vocab_size": TOKENS,
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
    config = transformers.BertConfig(
        **{
            "vocab_size": TOKENS,
            "pad_token_id": 0,
            "hidden_size": 32,
            "intermediate_size": 48,
            "num_hidden_layers": 2,
            "num_attention_heads": 4,
            "max_position_embeddings": 512,
            "initializer_range": 0.3,
            **changes,
        }
    )
    model = getattr(transformers, kind)(config).eval()
    model.save_pretrained(folder)
    return model


def ranker(folder: Path, query: str, **changes: Any) -> None:
    """Write a model that gives the text `query` a higher score for itself than other texts.

    changes   fields of its BertConfig
    """
    import torch
    from transformers import AutoTokenizer

    model = encoder(folder, "BertForSequenceClassification", num_labels=1, **changes)
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
        vocab_size=TOKENS,
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
