"""File names that mean a model without a TritonPythonModel. No imports beyond the standard library."""

from __future__ import annotations

SETTINGS = "model-settings.json"

# In the order of the search: what says most first, what needs no trust before pickles.
NAMES = (
    SETTINGS,
    "model.skops",
    "model.ubj",
    "model.json",
    "model.bst",
    "model.txt",
    "model.joblib",
    "model.pkl",
    "model.pickle",
)

PICKLES = (".joblib", ".pickle", ".pkl")
SKOPS = ".skops"
BOOSTERS = (".ubj", ".json", ".bst", ".txt")

CLASS_PARAMETER = "MODEL_CLASS"
