"""Requests that the compiled reader must not leave to the one in Python: otherwise it would be useless."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from unit.http.both_readers import MOST, REGIONS, left, numbers, read
from unit.http.drawn_requests import texts

from core import dtypes
from frontends.http.native import infer_request


def test_a_large_tensor_is_read_without_the_lock():
    values = np.random.default_rng(1).standard_normal(15_000).astype(np.float32)
    text = ",\n".join(map(str, values)).encode()
    assert len(text) > 2**16

    request, _ = read(numbers(dtypes.FP32, text, len(values)))

    assert bytes(request.inputs["x"].raw) == values.tobytes()
    assert type(request.inputs["x"].raw) is bytes


def test_data_may_precede_its_datatype_and_shape():
    request, _ = read(
        b'{"inputs":[{"data":[[1],[2]],"parameters":{"own":1},"shape":[2],"datatype":"INT8","name":"x"}]}'
    )
    assert request.inputs["x"].array.tolist() == [1, 2]


@pytest.mark.parametrize("depth,taken", [(100, True), (101, False)])
def test_data_is_taken_a_hundred_deep(depth, taken):
    text = b"[" * (depth - 1) + b"1" + b"]" * (depth - 1)
    assert left(numbers(dtypes.INT8, text)) != taken


@pytest.mark.parametrize("depth", [90, 101, 1000, 100_000])
def test_an_unknown_member_may_be_deep(depth):
    assert left(b'{"own":' + b"[" * depth + b"]" * depth + b',"inputs":[]}') == (depth > 90)


def test_names_are_kept_from_one_request_to_the_next():
    first, _ = read({"inputs": [{"name": "kept", "datatype": "INT8", "shape": [1], "data": [1]}]})
    second, _ = read({"inputs": [{"name": "kept", "datatype": "INT8", "shape": [1], "data": [1]}]})

    assert first.inputs["kept"].name is second.inputs["kept"].name


@given(st.lists(texts, min_size=2, max_size=300, unique=True))
def test_names_are_not_mistaken_for_each_other(names):
    entries = [
        {"name": name, "datatype": "INT8", "shape": [1], "data": [i % 100]}
        for i, name in enumerate(names)
    ]
    request, _ = read({"inputs": entries})
    assert list(request.inputs) == names


def test_a_form_that_all_outputs_have_is_shared():
    def form(*binary):
        listed = [
            {"name": str(i), "parameters": {"binary_data": on}} for i, on in enumerate(binary)
        ]
        return read({"inputs": [], "outputs": listed})[1]

    assert form(True) is form(True, True)
    assert form(False) is form()
    assert [form(True, False).binary(name) for name in "01"] == [True, False]


def test_a_body_shorter_than_its_json_is_a_slip_of_the_caller():
    for size in (-1, 3):
        with pytest.raises(ValueError):
            infer_request.read("m", -1, b"{}", size, MOST, REGIONS)
