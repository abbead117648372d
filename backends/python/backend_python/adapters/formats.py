"""File names that mean a model without a TritonPythonModel. No imports beyond the standard library."""

from __future__ import annotations

SETTINGS = "model-settings.json"

PICKLES = (".joblib", ".pickle", ".pkl")
SKOPS = ".skops"
BOOSTERS = (".ubj", ".json", ".bst", ".txt")

CLASS_PARAMETER = "MODEL_CLASS"


def is_model(name: str) -> bool:
    """Whether a file of this name is read by an adapter."""
    return name.endswith((SKOPS, *PICKLES, *BOOSTERS))
