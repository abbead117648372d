"""What the files of a model in the format of Hugging Face say, for every backend that reads them.

tokenizer_config.json ─► chat template, special tokens.  config.json of a module Pooling ─► how it pools.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

POOLINGS = ("mean", "cls", "last", "max")
# Flags of the module Pooling of sentence-transformers, and the words of newer versions.
_FLAGS = {
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_cls_token": "cls",
    "pooling_mode_lasttoken": "last",
    "pooling_mode_max_tokens": "max",
}
_WORDS = {"mean": "mean", "cls": "cls", "lasttoken": "last", "last": "last", "max": "max"}


def chat_template(tokenizer: Mapping[str, Any]) -> str:
    """Return the chat template; the one named "default" if there are several, and "" if there is none.

    tokenizer   content of tokenizer_config.json
    """
    found = tokenizer.get("chat_template")
    if type(found) is list:
        named = {each.get("name"): each.get("template") for each in found if type(each) is dict}
        found = named.get("default")
    return found if type(found) is str else ""


def special_token(tokenizer: Mapping[str, Any], name: str) -> str:
    """Return the text of the token "bos" or "eos"; "" if there is none.

    tokenizer   content of tokenizer_config.json
    """
    found = tokenizer.get(f"{name}_token")
    if type(found) is dict:
        found = found.get("content")
    return found if type(found) is str else ""


def pooling_mode(pooling: Mapping[str, Any]) -> str:
    """Return one of POOLINGS: how an embedding is made of those of the tokens.

    pooling   content of the config.json of a module Pooling
    Raises ValueError, which says what the file has, for none, for several, and for another one.
    """
    given = {
        name
        for name, value in pooling.items()
        if name.startswith("pooling_mode_") and value is True
    }
    word = pooling.get("pooling_mode")
    found = {_FLAGS.get(name, name) for name in given} | ({word} if type(word) is str else set())
    if len(found) != 1 or (mode := _WORDS.get(next(iter(found)))) is None:
        shown = ", ".join(sorted(found)) or "none"
        raise ValueError(f"has the pooling {shown}, it must have one of {', '.join(POOLINGS)}")
    return mode
