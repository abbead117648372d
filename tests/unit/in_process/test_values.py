"""Inputs of callers, and results for them."""

import hypothesis.extra.numpy as arrays
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import core
from core import dtypes
from core.request import SEQUENCE_END, SEQUENCE_START
from core.response import InferenceResponse
from frontends.in_process.pending import set_deadline
from frontends.in_process.values import Response, request_of, tensor_of

NUMBERS = [dtype.numpy for dtype in dtypes.ALL if dtype not in (dtypes.BYTES, dtypes.BF16)]


class Exported:
    """An array of another library: all that it shows is DLPack."""

    def __init__(self, array, error=None):
        self._array = array
        self._error = error
        self.device = "cuda:0" if error else "cpu"

    def __dlpack__(self, **wishes):
        if self._error:
            raise self._error
        return self._array.__dlpack__(**wishes)

    def __dlpack_device__(self):
        return self._array.__dlpack_device__()


def refused(value):
    with pytest.raises(core.CoreError) as refusal:
        tensor_of("x", value)
    assert refusal.value.kind is core.Kind.INVALID
    assert "'x'" in refusal.value.message
    return refusal.value.message


def test_an_array_is_not_copied():
    array = np.arange(6, dtype=np.float32).reshape(2, 3)

    tensor = tensor_of("x", array)

    assert np.shares_memory(tensor.array, array)
    assert (tensor.dtype, tensor.shape) == (dtypes.FP32, (2, 3))


def test_a_model_cannot_write_into_the_callers_array():
    array = np.zeros(3, np.int8)

    seen = tensor_of("x", array).array

    with pytest.raises(ValueError, match="read-only"):
        seen[0] = 1
    array[0] = 2  # the caller can


def test_an_array_with_dlpack_is_not_copied():
    array = np.arange(4, dtype=np.int64)

    tensor = tensor_of("x", Exported(array))

    assert np.shares_memory(tensor.array, array)


def test_an_array_that_cannot_be_exported_is_refused_with_device_and_reason():
    text = refused(Exported(np.zeros(1), BufferError("it is elsewhere")))

    assert "on cuda:0" in text
    assert "it is elsewhere" in text


@given(
    array=st.sampled_from(NUMBERS).flatmap(
        lambda dtype: arrays.arrays(dtype, arrays.array_shapes(min_dims=0, max_dims=4, min_side=0))
    ),
    swapped=st.booleans(),
    turned=st.booleans(),
)
def test_an_array_of_any_layout_has_the_bytes_of_its_elements(array, swapped, turned):
    value = array.astype(array.dtype.newbyteorder(">")) if swapped else array
    value = value.T if turned else value

    tensor = tensor_of("x", value)

    expected = array.T if turned else array
    assert tensor.shape == expected.shape
    assert bytes(tensor.raw) == expected.tobytes()


def test_text_comes_as_lists_or_arrays():
    assert tensor_of("x", ["a", b"\xff"]).array.tolist() == [b"a", b"\xff"]
    assert tensor_of("x", [["a"], ["ü"]]).shape == (2, 1)
    assert tensor_of("x", []).shape == (0,)
    assert tensor_of("x", np.array(["ab", "c"])).array.tolist() == [b"ab", b"c"]
    assert tensor_of("x", np.array(["ab", b"c"], object)).dtype is dtypes.BYTES


def test_bfloat16_travels_as_its_bit_patterns():
    ml_dtypes = pytest.importorskip("ml_dtypes")
    array = np.array([1.5, -2], ml_dtypes.bfloat16)

    tensor = tensor_of("x", array)

    assert tensor.dtype is dtypes.BF16
    assert np.shares_memory(tensor.array, array)


def test_a_tensor_keeps_its_datatype_under_its_new_name():
    bits = core.Tensor.of("old", np.zeros(2, np.uint16), dtypes.BF16)

    assert tensor_of("x", bits).dtype is dtypes.BF16
    assert tensor_of("x", bits).name == "x"


@pytest.mark.parametrize("value", [3.0, "text", None, np.float32(1), {"a": 1}])
def test_a_value_of_another_type_is_refused_with_the_expected_types(value):
    assert "give a numpy array" in refused(value)


def test_numbers_in_lists_are_refused_for_they_have_no_datatype():
    assert "with a dtype" in refused([1, 2])
    assert "holds a int" in refused(["a", 1])
    assert "different lengths" in refused([["a"], ["b", "c"]])
    assert "holds a NoneType" in refused(np.array([None]))


def test_a_type_that_the_protocol_does_not_have_is_refused():
    assert "complex" in refused(np.zeros(2, complex))


def test_a_request_has_the_given_fields():
    request = request_of(
        "m",
        {"x": np.zeros(1, np.int8)},
        version="3",
        id="mine",
        outputs=["y", core.RequestedOutput("z", class_count=2)],
        parameters={"a": 1},
        correlation_id=7,
        sequence_start=True,
        sequence_end=True,
        priority=2,
        queue_timeout_us=5,
    )

    assert (request.model_name, request.model_version, request.id) == ("m", 3, "mine")
    assert [(each.name, each.class_count) for each in request.outputs] == [("y", 0), ("z", 2)]
    assert request.parameters == {"a": 1}
    assert (request.correlation_id, request.flags) == (7, SEQUENCE_START | SEQUENCE_END)
    assert (request.priority, request.timeout_us) == (2, 5)


def test_inputs_without_names_and_outputs_that_are_one_text_are_refused():
    with pytest.raises(core.CoreError, match="give a dict"):
        request_of("m", [np.zeros(1)])
    with pytest.raises(core.CoreError, match=r"\['y'\]"):
        request_of("m", {}, outputs="y")
    with pytest.raises(core.CoreError, match="version should be"):
        request_of("m", {}, version="one")


@pytest.mark.parametrize(
    "wrong",
    [
        {"id": 3},
        {"version": 1.5},
        {"outputs": [3]},
        {"parameters": [1]},
        {"parameters": {"a": [1]}},
        {"parameters": {1: "a"}},
        {"correlation_id": 1.5},
        {"correlation_id": -1},
        {"priority": "high"},
        {"priority": -1},
        {"queue_timeout_us": 2**63},
    ],
    ids=str,
)
def test_an_invalid_field_of_a_request_is_refused_by_name(wrong):
    with pytest.raises(core.CoreError, match=f"^{next(iter(wrong))}") as found:
        request_of("m", {}, **wrong)

    assert found.value.kind is core.Kind.INVALID


def test_a_model_is_given_by_its_name():
    with pytest.raises(core.CoreError, match=r"^model=3: give a str$"):
        request_of(3, {})
    assert request_of(np.str_("m"), {}, version=np.int64(2)).model_version == 2


@pytest.mark.parametrize("timeout", ["1", 0, -1, float("nan"), float("inf"), 1e300])
def test_an_invalid_timeout_is_refused(timeout):
    with pytest.raises(core.CoreError, match=r"give seconds above 0, or None$"):
        set_deadline(request_of("m", {}), timeout)


def test_a_response_is_a_mapping_of_arrays():
    y = np.ones((1, 2), np.float32)
    answer = InferenceResponse("m", 3, [core.Tensor.of("y", y)], id="a", parameters={"p": True})

    response = Response(answer)

    assert dict(response).keys() == {"y"}
    assert response["y"] is y
    assert "z" not in response
    with pytest.raises(KeyError, match=r"model 'm' gave no output 'z'; its outputs are y"):
        response["z"]
    assert (response.model_name, response.model_version, response.id) == ("m", 3, "a")
    assert response.parameters == {"p": True}
    assert response.tensor("y").dtype is dtypes.FP32
    assert "y" in repr(response)
    assert response != Response(answer)
    assert {response: 1}[response] == 1
    with pytest.raises(KeyError):
        response["z"]
