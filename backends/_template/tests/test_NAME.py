"""The contract of a backend, and what only this one does."""

import numpy as np
import pytest
from backend_NAME import FILE, backend
from backend_NAME.conformance import TestContract as TestContract

from core.errors import CoreError

pytest_plugins = ["core_testing.plugin"]


def test_a_model_needs_only_its_file(model_repository, serve_repository):
    model_repository.add("half", files={FILE: '{"factor": 0.5}'})

    served = serve_repository(backend)

    answer = served.ask({"x": np.array([[1, 2, 3]], np.float32)}, name="half")
    assert answer["y"].tolist() == [[0.5, 1.0, 1.5]]


def test_a_configuration_takes_precedence_over_the_file(model_repository, serve_repository):
    model_repository.add("half", "max_batch_size: 2", {FILE: '{"factor": 0.5}'})

    served = serve_repository(backend)

    assert served.config("half").max_batch_size == 2


@pytest.mark.parametrize("files", [{}, {FILE: "{}"}])
def test_an_error_names_the_file(model_repository, serve_repository, files):
    model_repository.add("wrong", files=files)

    with pytest.raises(CoreError, match=r"NAME\.json"):
        serve_repository(backend)
