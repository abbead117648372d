"""Pooling: how an embedding of a text is made of those of its tokens. Imports no framework.

modules.json, 1_Pooling/config.json ─► [read_pooling] ─► Pooling
"""

from __future__ import annotations

from dataclasses import dataclass

from core_generate.hugging_face import pooling_mode

from backend_transformers.folder import Folder

MODULES = "modules.json"


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
    try:
        return pooling_mode(values)
    except ValueError as error:
        raise folder.wrong(file, str(error)) from None
