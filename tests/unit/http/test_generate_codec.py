"""JSON members ↔ tensors and parameters of generate."""

import itertools
import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as some

from core import dtypes
from core.config import InputSpec, Signature
from core.errors import CoreError, Kind
from core.response import InferenceResponse
from core.tensor import Tensor
from frontends.http.codec.generate import filled, read, write

MOST = 2**20


def model(batch=0, **inputs):
    """A model with inputs `name=(dtype, dims)`."""
    specs = {name: InputSpec(name, dtype, dims) for name, (dtype, dims) in inputs.items()}
    return Signature("m", 1, specs, {}, batch, False)


TEXT = model(text=(dtypes.BYTES, (1,)), count=(dtypes.INT32, (-1,)))


def parsed(document, signature=TEXT, most=MOST):
    body = document if isinstance(document, bytes) else json.dumps(document).encode()
    return read("m", -1, signature, body, most)


def refusal(document, signature=TEXT, most=MOST):
    with pytest.raises(CoreError) as caught:
        parsed(document, signature, most)
    assert caught.value.kind is Kind.INVALID
    return caught.value.message


# Members ------------------------------------------------------------------------


def test_members_are_inputs_or_parameters():
    request = parsed({"text": "hi", "word": "w", "truth": True, "count": [1, 2], "half": 0.5})

    assert request.inputs["text"].array.tolist() == [b"hi"]
    assert request.inputs["count"].array.tolist() == [1, 2]
    assert request.parameters == {"word": "w", "truth": True, "half": 0.5}
    assert (request.model_name, request.model_version, request.id) == ("m", -1, "")


def test_members_of_parameters_count_like_other_members():
    request = parsed({"parameters": {"text": "hi", "word": "w"}, "other": 1})

    assert request.inputs["text"].array.tolist() == [b"hi"]
    assert request.parameters == {"word": "w", "other": 1}


def test_id_names_the_request_and_is_a_parameter_as_in_triton():
    request = parsed({"id": "7", "text": "hi"})

    assert request.id == "7"
    assert request.parameters == {"id": "7"}


def test_id_may_be_an_input_of_any_type():
    signature = model(id=(dtypes.INT64, (1,)))

    request = parsed({"id": 7}, signature)

    assert request.id == ""
    assert request.inputs["id"].array.tolist() == [7]
    assert parsed({"id": "a"}, model(id=(dtypes.BYTES, (1,)))).id == "a"


def test_id_of_another_type_is_refused():
    assert "non-string as string" in refusal({"id": 7})


@pytest.mark.parametrize("value", [None, {}, {"a": 1}, [], [1]])
def test_a_parameter_of_another_type_is_refused(value):
    text = "parameter 'p' has invalid type. It should be either 'int', 'bool', or 'string'."

    assert refusal({"p": value}) == text
    assert refusal({"parameters": {"p": value}}) == f"Converting keyword: 'parameters': {text}"


@pytest.mark.parametrize("value", [None, 1, "x", [], [{}]])
def test_parameters_that_are_no_object_are_refused(value):
    assert refusal({"parameters": value}).startswith(
        "Expected JSON object for keyword: 'parameters': "
    )


def test_an_input_is_given_once():
    assert (
        refusal({"id": "7", "text": "a", "parameters": {"text": "b"}})
        == "Converting keyword: 'parameters': [request id: 7] input 'text' already exists in request"
    )


def test_a_model_with_an_input_called_parameters_cannot_be_used():
    assert (
        refusal({}, model(parameters=(dtypes.BYTES, (1,))))
        == "Keyword 'parameters' for nested schema also given as input tensor name"
    )


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'"text"', b"1", b"null", b"\xff", b"{}x"])
def test_a_body_that_is_no_object_is_refused(body):
    refusal(body)


def test_members_have_a_bound():
    many = {f"p{number}": 1 for number in range(10_001)}

    assert "10000 are the most" in refusal(many)
    assert "10000 are the most" in refusal({"parameters": many})


# Values and shapes --------------------------------------------------------------


@pytest.mark.parametrize(
    "batch,dims,value,shape",
    [
        (0, (1,), 5, (1,)),
        (0, (1,), [5], (1,)),
        (0, (-1,), 5, (1,)),
        (0, (-1,), [5] * 3, (3,)),
        (0, (-1,), [], (0,)),
        (0, (), 5, ()),
        (0, (2, -1), [5] * 6, (2, 3)),
        (0, (-1, 2), [5] * 6, (3, 2)),
        (0, (-1, -1), [5] * 6, (1, 6)),
        (0, (-1, 2, -1), [5] * 6, (1, 2, 3)),
        (8, (1,), 5, (1, 1)),
        (8, (2,), [5] * 6, (3, 2)),
        (8, (-1,), [5] * 6, (1, 6)),
    ],
)
def test_values_fill_the_shape_of_the_input(batch, dims, value, shape):
    assert parsed({"x": value}, model(batch, x=(dtypes.INT32, dims))).inputs["x"].shape == shape


@pytest.mark.parametrize("dims,value", [((1,), []), ((1,), [1, 2]), ((2,), 1), ((2, -1), [1] * 3)])
def test_values_that_fill_no_shape_are_refused(dims, value):
    assert refusal({"x": value}, model(x=(dtypes.INT32, dims))).startswith(
        "The schema can not convert input 'x' to tensor with proper shape"
    )


@given(some.lists(some.sampled_from([-1, 1, 2, 3, 4]), max_size=4), some.integers(0, 30))
def test_the_shape_is_the_first_that_a_search_finds(dims, count):
    # Oracle: every shape whose earlier variable dimensions are 1, tried in turn.
    last = max((i for i, dim in enumerate(dims) if dim == -1), default=None)
    choices = [
        [dim] if dim != -1 else range(31) if i == last else [1] for i, dim in enumerate(dims)
    ]
    fitting = [shape for shape in itertools.product(*choices) if math.prod(shape) == count]

    assert filled(tuple(dims), count) == (fitting[0] if fitting else None)


def test_a_shape_tensor_has_no_batch_dimension():
    spec = InputSpec("x", dtypes.INT32, (2,), shape_tensor=True)

    request = parsed({"x": [1, 2]}, Signature("m", 1, {"x": spec}, {}, 8, False))

    assert request.inputs["x"].shape == (2,)


@pytest.mark.parametrize(
    "dtype,value,text",
    [
        (dtypes.BYTES, 1, "non-string as string"),
        (dtypes.BYTES, None, "non-string as string"),
        (dtypes.BYTES, {"a": 1}, "non-string as string"),
        (dtypes.BOOL, "true", "non-boolean as boolean"),
        (dtypes.INT8, 1.0, "non-signed-integer"),
        (dtypes.INT8, 128, "out of the range"),
        (dtypes.FP32, "1", "non-number as double"),
        (dtypes.FP16, 1, "not supported"),
        (dtypes.BF16, 1, "not supported"),
    ],
)
def test_a_value_of_the_wrong_type_is_refused(dtype, value, text):
    assert text in refusal({"x": value}, model(x=(dtype, (1,))))


@given(some.lists(some.text(some.characters(exclude_categories=["Cs"])), max_size=4))
def test_any_text_arrives(texts):
    found = parsed({"x": texts}, model(x=(dtypes.BYTES, (-1,)))).inputs["x"]

    assert [item.decode() for item in found.array.tolist()] == texts


def test_all_inputs_together_are_limited():
    two = model(x=(dtypes.FP64, (-1,)), y=(dtypes.FP64, (-1,)))

    assert len(parsed({"x": [1] * 5, "y": [1] * 5}, two, most=80).inputs) == 2
    assert "(88 bytes)" in refusal({"x": [1] * 5, "y": [1] * 6}, two, most=80)
    assert "--http-max-input-size" in refusal({"x": [1] * 11}, two, most=80)


# Answers ------------------------------------------------------------------------


def written(*outputs, **more):
    return write(InferenceResponse("m", 3, list(outputs), **more))


def test_an_answer_has_its_members_by_name():
    text = written(
        Tensor.of("y", np.array([[1, 2], [3, 4]], np.int32)),
        Tensor.of("a", np.array([b"hi"], object)),
        id="7",
        parameters={"z": True, "b": 1.5},
    )

    assert text == (
        b'{"a":"hi","b":1.5,"id":"7","model_name":"m","model_version":"3","y":[1,2,3,4],"z":true}'
    )


@pytest.mark.parametrize(
    "array,text",
    [
        (np.array([[7]], np.uint64), b"7"),
        (np.array(7.5, np.float32), b"7.5"),
        (np.array([True]), b"true"),
        (np.array([np.nan]), b"NaN"),
        (np.array([b'a"\n[]'], object), rb'"a\"\n[]"'),
        (np.array([b"\xff"], object), b'"\xff"'),
        (np.array([b"a", b"b"], object), b'["a","b"]'),
        (np.array([], np.float32), b"[]"),
        (np.array([], object), b"[]"),
        (np.array([[1.5, np.inf]]), b"[1.5,Infinity]"),
    ],
)
def test_one_element_is_a_value_and_others_a_list(array, text):
    assert written(Tensor.of("y", array)) == (
        b'{"model_name":"m","model_version":"3","y":' + text + b"}"
    )


def test_half_floats_cannot_be_written():
    with pytest.raises(CoreError, match="FP16"):
        written(Tensor.of("y", np.array([1], np.float16)))
