"""Responses → bytes."""

import json

import numpy as np
import pytest

from core import dtypes
from core.errors import CoreError, Kind
from core.response import InferenceResponse
from core.tensor import Tensor
from frontends.http.codec.parse import OutputForm
from frontends.http.codec.render import MOST_JOINED, render, render_at_once

FLOATS = Tensor.of("f", np.array([[1, 2]], np.float32))
WORDS = Tensor.of("w", np.array([b"a"], object))
EMPTY = Tensor.of("e", np.zeros((0, 2), np.int8))


def response(*outputs, **more):
    return InferenceResponse("m", 3, list(outputs), **more)


def test_members_come_in_tritons_order():
    answer = render(
        response(FLOATS, WORDS, id="a", parameters={"p": 1, "q": True, "r": "x", "s": 0.5}),
        OutputForm(),
    )

    assert answer.body == (
        b'{"id":"a","model_name":"m","model_version":"3",'
        b'"parameters":{"p":1,"q":true,"r":"x","s":0.5},"outputs":['
        b'{"name":"f","datatype":"FP32","shape":[1,2],"data":[1.0,2.0]},'
        b'{"name":"w","datatype":"BYTES","shape":[1],"data":["a"]}]}'
    )
    assert (answer.status, dict(answer.headers)) == (200, {"Content-Type": "application/json"})


def test_members_without_a_value_are_left_out():
    assert render(response(), OutputForm()).body == (
        b'{"model_name":"m","model_version":"3","outputs":[]}'
    )


def test_binary_outputs_follow_the_json_in_their_order():
    answer = render(response(FLOATS, WORDS), OutputForm(default=True))

    size = int(answer.headers["Inference-Header-Content-Length"])
    assert answer.headers["Content-Type"] == "application/octet-stream"
    assert [entry["parameters"] for entry in json.loads(answer.body[:size])["outputs"]] == [
        {"binary_data_size": 8},
        {"binary_data_size": 5},
    ]
    assert answer.body[size:] == np.array([1, 2], "<f4").tobytes() + b"\x01\0\0\0a"


def test_each_output_has_its_own_form():
    answer = render(response(FLOATS, WORDS), OutputForm(listed={"w": True}))

    size = int(answer.headers["Inference-Header-Content-Length"])
    first, second = json.loads(answer.body[:size])["outputs"]
    assert first["data"] == [1, 2]
    assert second["parameters"] == {"binary_data_size": 5}
    assert answer.body[size:] == b"\x01\0\0\0a"


def test_an_answer_without_binary_bytes_is_json():
    answer = render(response(EMPTY), OutputForm(default=True))

    assert dict(answer.headers) == {"Content-Type": "application/json"}
    assert json.loads(answer.body)["outputs"] == [
        {"name": "e", "datatype": "INT8", "shape": [0, 2], "parameters": {"binary_data_size": 0}}
    ]


def test_halves_leave_in_binary_only():
    half = Tensor("h", dtypes.FP16, (1,), raw=b"\0\x3c")

    assert render(response(half), OutputForm(default=True)).body.endswith(b"\0\x3c")
    with pytest.raises(CoreError) as caught:
        render(response(half), OutputForm())
    assert caught.value.kind is Kind.INVALID


def test_a_scalar_is_one_element():
    scalar = Tensor.of("s", np.array(5, np.int64))
    answer = render(response(scalar), OutputForm())
    assert b'"shape":[],"data":[5]' in answer.body


@pytest.mark.parametrize(("size", "at_once"), [(MOST_JOINED // 2, True), (MOST_JOINED, False)])
def test_large_tensors_are_put_together_on_another_thread(size, at_once):
    large = response(Tensor.of("x", np.zeros(size, np.uint8)))
    form = OutputForm(default=True)

    answer = render_at_once(large, form)

    assert (answer is not None) == at_once
    assert render(large, form).body.endswith(bytes(size))
