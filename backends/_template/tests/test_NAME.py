"""The contract of a backend, and what only this one does."""

import json

import numpy as np
import pytest
from backend_NAME import backend
from backend_NAME.conformance import TestContract as TestContract

from core.errors import CoreError

pytest_plugins = ["core_testing.plugin"]

CONFIG = """
max_batch_size: 8
input [ { name: "x" data_type: TYPE_FP32 dims: [ -1 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ -1 ] } ]
"""


def test_the_factor_is_that_of_the_file(model_repository, serve_repository):
    model_repository.add("half", CONFIG, {"model.json": json.dumps({"factor": 0.5})})

    served = serve_repository(backend)

    answer = served.ask({"x": np.array([[1, 2, 3]], np.float32)}, name="half")
    assert answer["y"].tolist() == [[0.5, 1.0, 1.5]]


def test_a_model_without_its_file_names_the_missing_file(model_repository, serve_repository):
    model_repository.add("empty", CONFIG)

    with pytest.raises(CoreError, match=r"model\.json"):
        serve_repository(backend)
