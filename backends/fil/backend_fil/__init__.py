"""Forests of XGBoost, LightGBM, scikit-learn and treelite.

    backend.py    Backend and Model: what core calls; one forest for all instances of a version
    settings.py   parameters of config.pbtxt, by their names of today and of before
    files.py      which file, of which kind, and what to do when it cannot be read
    categories.py the names of categories in files of XGBoost, which treelite cannot read
    reading.py    a forest of treelite → a forest of ours
    answers.py    what clients get: which values, in which shape; what does not fit is refused
    complete.py   what the model file knows, written into a configuration
    instance.py   execute: rows ─► forest ─► outputs
    workers.py    threads that share the rows of a large batch
    gpu.py        a forest on a GPU, by nvForest
    native/       forests as they lie in memory, rows through them, Shapley values

treelite is imported when the first model asks for this backend, since only then this package is.
"""

from backend_fil.backend import backend

__all__ = ["backend"]
