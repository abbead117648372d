"""Models of CatBoost: their files ─► [catboost] ─► treelite. The library catboost is not used.

binary and text read the two forms of a file into Content, and building makes a treelite model of it.
"""

from __future__ import annotations

from pathlib import Path

import treelite

from backend_fil.catboost import binary, text
from backend_fil.catboost.binary import MARK
from backend_fil.catboost.building import THRESHOLD, treelite_model
from backend_fil.catboost.content import Content, Damaged, Refused

KINDS = {"catboost": binary.read, "catboost_json": text.read}
KEYS = (
    b"features_info",
    b"model_info",
    b"oblivious_trees",
    b"trees",
    b"ctr_data",
    b"scale_and_bias",
)

__all__ = [
    "KEYS",
    "KINDS",
    "MARK",
    "THRESHOLD",
    "Content",
    "Damaged",
    "Refused",
    "content_of",
    "treelite_model",
    "treelite_of",
]


def content_of(path: Path, kind: str) -> Content:
    """Return what a file says. Raises Damaged for an incomplete file, and Refused for what cannot be served.

    kind   a key of KINDS
    """
    return KINDS[kind](path.read_bytes())


def treelite_of(path: Path, kind: str) -> treelite.Model:
    """Return the treelite model of a file. Raises Damaged, Refused and treelite.TreeliteError."""
    return treelite_model(content_of(path, kind))
