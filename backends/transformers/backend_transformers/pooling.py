"""Pooling: how an embedding of a text is made of those of its tokens. Imports no framework.

modules.json, 1_Pooling/config.json ─► [read_pooling] ─► Pooling
"""

from __future__ import annotations

from dataclasses import dataclass

from backend_transformers.folder import Folder

MODULES = "modules.json"
POOLINGS = ("mean", "cls", "last", "max")
# Flags in the configuration of the module Pooling.
_FLAGS = {
    "pooling_mode_mean_tokens": "mean",
    "pooling_mode_cls_token": "cls",
    "pooling_mode_lasttoken": "last",
    "pooling_mode_max_tokens": "max",
}
_WORDS = {"mean": "mean", "cls": "cls", "lasttoken": "last", "last": "last", "max": "max"}


@dataclass(frozen=True)
class Pooling:
    """How an embedding is made.

    mode        "mean" of all tokens, "cls": the first one, "last": the last one, or the "max" of each number
    normalize   whether its length becomes 1
    """

    mode: str = "mean"
    normalize: bool = False


def read_pooling(folder: Folder) -> Pooling:
    """Return what modules.json of sentence-transformers says; without it, the mean, not normalized.

    Raises CoreError(INVALID) for a module other than Transformer, Pooling and Normalize, and for another
    pooling than those of POOLINGS.
    """
    modules = folder.read(MODULES, list)
    if modules is None:
        return Pooling()
    mode, normalize = "mean", False
    for each in modules:
        kind = str(each.get("type", "")).rpartition(".")[2] if type(each) is dict else ""
        if kind == "Pooling":
            mode = _mode(folder, f"{each.get('path', '')}/config.json")
        elif kind == "Normalize":
            normalize = True
        elif kind not in ("Transformer", "Dropout"):
            raise folder.wrong(
                MODULES,
                f"has the module '{kind}'; this backend has Transformer, Pooling and Normalize",
            )
    return Pooling(mode, normalize)


def _mode(folder: Folder, file: str) -> str:
    values = folder.read(file, dict)
    if values is None:
        raise folder.wrong(MODULES, f"names the file '{file}', which is not there")
    given = {
        name for name, value in values.items() if name.startswith("pooling_mode_") and value is True
    }
    word = values.get("pooling_mode")
    found = {_FLAGS.get(name, name) for name in given} | ({word} if type(word) is str else set())
    if len(found) != 1 or (mode := _WORDS.get(next(iter(found)))) is None:
        raise folder.wrong(
            file,
            f"has the pooling {', '.join(sorted(found)) or 'none'}, it must have one of {POOLINGS}",
        )
    return mode
