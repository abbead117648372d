"""Refuses texts that would end the process in llama.cpp's splitter.

llama.cpp splits a text with regular expressions before it looks up tokens. For some vocabularies it has code
of its own for that. For all others std::regex calls itself once for each character of a match, such as a
letter of a word: some ten thousand in a row exceed the stack, and the process ends
(https://github.com/ggml-org/llama.cpp/issues/27783).
"""

from __future__ import annotations

import re

from core_generate.gguf import Metadata

from core.errors import invalid

MOST = 4_000  # characters of one kind in a row: a call takes 320 bytes, and a stack may have 2 MB

# Vocabularies of words, of pieces of sentences and of bytes: they need no regular expressions.
_UNSPLIT = frozenset({"bert", "llama", "none", "no_vocab", "plamo2", "rwkv", "t5"})
# `tokenizer.ggml.pre` with which xllamacpp 2026.10 splits 100,000 characters of each kind in a row.
_WHOLE = frozenset(
    [
        "chatglm-bpe",
        "command-r",
        "dbrx",
        "exaone",
        "falcon3",
        "gemma4",
        "gpt-2",
        "granite-docling",
        "hunyuan",
        "kimi-k2",
        "llama-bpe",
        "llama-v3",
        "llama3",
        "minerva-7b",
        "mpt",
        "olmo",
        "phi-2",
        "pixtral",
        "qwen2",
        "qwen35",
        "refact",
        "smollm",
        "stablelm2",
        "starcoder",
    ]
)

# What a match may go on over: all but spaces and punctuation, all but letters and digits, and spaces.
_PUNCTUATION = r"!-/:-@\[-`{-~\u2000-\u206f\u3000-\u303f\uff01-\uff0f\uff1a-\uff20"
_KINDS = [re.compile(each) for each in (rf"[^\s{_PUNCTUATION}]+", r"(?:[^\w\s]|_)+", r"\s+")]


def are_bounded(metadata: Metadata) -> bool:
    """Return whether texts for a model must have no run of more than MOST characters of one kind."""
    kind = str(metadata.values.get("tokenizer.ggml.model", ""))
    return kind not in _UNSPLIT and metadata.values.get("tokenizer.ggml.pre") not in _WHOLE


def check(text: str) -> None:
    """Raise CoreError(INVALID) for a text with a run of more than MOST characters of one kind."""
    for at in range(MOST, len(text), MOST):  # of a longer run, one of these is a part
        behind, before = text[at : at + MOST + 1], text[at - MOST : at][::-1]
        for kind in _KINDS:
            length = _length(kind, behind)
            if length and length + _length(kind, before) > MOST:
                raise invalid(
                    f"the text has more than {MOST} letters and digits in a row, or as many spaces, or as "
                    "many other characters: llama.cpp cannot split that for this model, and would end the "
                    "process; shorten or split each such row"
                )


def _length(kind: re.Pattern[str], text: str) -> int:
    found = kind.match(text)
    return found.end() if found else 0
