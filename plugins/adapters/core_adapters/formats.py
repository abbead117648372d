"""File names of models without a TritonPythonModel. Imports only the standard library."""

from __future__ import annotations

SETTINGS = "model-settings.json"

# In the order of the search: settings first, then formats that need no trust, then pickles.
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
FUNCTION_PARAMETER = "MODEL_FUNCTION"
