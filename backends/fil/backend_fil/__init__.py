"""Run decision-tree forests of XGBoost, LightGBM, scikit-learn and treelite.

    backend.py    Backend and Model: one forest for all instances of a version
    settings.py   parameters of config.pbtxt, with current and removed names
    files.py      find the model file and its kind; errors with advice
    categories.py category names in files of XGBoost, which treelite cannot read
    reading.py    convert a treelite model to a Forest
    answers.py    values and shapes of the outputs; refuse a configuration that does not fit
    complete.py   complete a configuration from the model file
    instance.py   execute: rows ─► forest ─► outputs
    workers.py    threads that share the rows of a large batch
    gpu.py        a forest on a GPU, by nvForest
    native/       memory layout of forests, prediction, Shapley values

The import of this package imports treelite. It happens when the first model needs this backend.
"""

from backend_fil.backend import backend

__all__ = ["backend"]
