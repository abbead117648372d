"""The contract, and what only affine models do."""

import io

import numpy as np
import pytest
from backend_affine import FILE, backend
from backend_affine.conformance import TestContract as TestContract

from core.errors import CoreError

pytest_plugins = ["core_testing.plugin"]


def file(**arrays):
    buffer = io.BytesIO()
    np.savez(buffer, **arrays)
    return {FILE: buffer.getvalue()}


def test_a_model_needs_no_configuration(model_repository, serve_repository):
    model_repository.add("m", files=file(weights=np.ones((2, 3)), bias=np.zeros(3)))

    served = serve_repository(backend)

    assert served.config("m").max_batch_size == 64
    answer = served.ask({"x": np.array([[1, 2]], np.float32)}, name="m")
    assert answer["y"].tolist() == [[3.0, 3.0, 3.0]]


@pytest.mark.parametrize(
    ("arrays", "text"),
    [
        ({"weights": np.ones((2, 3))}, "has no bias, only"),
        ({"weights": np.ones((2, 3)), "bias": np.ones(2)}, "need a bias of shape"),
    ],
)
def test_a_file_that_is_no_model_is_refused_by_name(
    model_repository, serve_repository, arrays, text
):
    model_repository.add("m", files=file(**arrays))

    with pytest.raises(CoreError, match=text) as caught:
        serve_repository(backend)

    assert FILE in caught.value.message


def test_a_batch_has_no_more_numbers_than_the_parameter_allows(model_repository, serve_repository):
    config = """
    dynamic_batching { max_queue_delay_microseconds: 200000 }
    parameters { key: "most_numbers" value { string_value: "8" } }
    """
    model_repository.add("m", config, files=file(weights=np.ones((2, 3)), bias=np.zeros(3)))
    served = serve_repository(backend)

    answers = served.together([{"x": np.ones((2, 2), np.float32)}] * 4, name="m")

    assert [answer["y"].shape for answer in answers] == [(2, 3)] * 4
    assert served.executions("m") == 2  # of two requests with four numbers each


def test_a_parameter_that_is_no_number_is_refused(model_repository, serve_repository):
    config = 'parameters { key: "most_numbers" value { string_value: "many" } }'
    model_repository.add("m", config, files=file(weights=np.ones((2, 3)), bias=np.zeros(3)))

    with pytest.raises(CoreError, match="'most_numbers' is 'many', it must be a number"):
        serve_repository(backend)
