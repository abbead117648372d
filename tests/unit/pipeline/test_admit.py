"""Accepted and refused requests of a model, with Triton's texts."""

import numpy as np
import pytest

from core import dtypes
from core.errors import CoreError, Kind
from core.pipeline.admit import Admission
from core.pipeline.batching.group import group_key
from core.request import InferenceRequest, RequestedOutput
from core.tensor import Tensor

PAIR = """
input [ { name: "a" data_type: TYPE_FP32 dims: [ 4 ] }, { name: "b" data_type: TYPE_STRING dims: [ -1 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ 4 ] } ]
"""
ONE = 'input [ { name: "a" data_type: TYPE_FP32 dims: [ 4 ] } ]'
OPTIONAL = """
input [ { name: "a" data_type: TYPE_FP32 dims: [ 1 ] },
        { name: "b" data_type: TYPE_FP32 dims: [ 1 ] optional: true } ]
"""


def a(rows=1, length=4):
    return Tensor("a", dtypes.FP32, (rows, length), raw=bytes(4 * rows * length))


def b(rows=1, items=(b"x",)):
    return Tensor.of("b", np.array([list(items)] * rows, object))


def admit(signature, *tensors, id=""):
    request = InferenceRequest("m", {tensor.name: tensor for tensor in tensors}, id=id)
    Admission(signature)(request)
    return request


def refused(signature, *tensors, id=""):
    with pytest.raises(CoreError) as error:
        admit(signature, *tensors, id=id)
    assert error.value.kind is Kind.INVALID
    return error.value.message


def test_a_valid_request_gets_its_rows_and_arrival_time(signature):
    request = admit(signature(PAIR), a(3), b(3))

    assert request.rows == 3
    assert request.arrival_ns > 0


def test_a_refusal_begins_with_the_id_of_the_request(signature):
    assert refused(signature(PAIR), a(), id="r7").startswith("[request id: r7] expected 2 inputs")
    assert refused(signature(PAIR), a()).startswith("[request id: <id_unknown>] ")


def test_missing_inputs_and_outputs_are_named(signature):
    assert refused(signature(PAIR), a()).endswith(
        "expected 2 inputs but got 1 inputs for model 'm'. Got input(s) ['a'], but missing required "
        "input(s) ['b']. Please provide all required input(s)."
    )


def test_with_optional_inputs_the_text_gives_the_range(signature):
    assert "expected number of inputs between 1 and 2 but got 0 inputs for model 'm'" in refused(
        signature(OPTIONAL)
    )


def test_an_optional_input_may_be_left_out(signature):
    assert admit(signature(OPTIONAL), a(2, 1)).rows == 2


def test_an_unknown_input_is_named(signature):
    wrong = Tensor("x", dtypes.FP32, (1, 4), raw=bytes(16))

    assert "unexpected inference input 'x' for model 'm'" in refused(signature(ONE), wrong)


def test_the_error_of_a_wrong_datatype_names_both_datatypes(signature):
    wrong = Tensor("a", dtypes.INT32, (1, 4), raw=bytes(16))

    assert "inference input 'a' data-type is 'INT32', but model 'm' expects 'FP32'" in refused(
        signature(ONE), wrong
    )


@pytest.mark.parametrize("shape", [(1, 3), (4,), (1, 4, 1), (1, 1, 4)])
def test_the_error_of_a_wrong_shape_names_the_expected_shape(signature, shape):
    wrong = Tensor("a", dtypes.FP32, shape, raw=bytes(16))

    text = refused(signature(ONE), wrong)

    assert "unexpected shape for input 'a' for model 'm'. Expected [-1,4], got [" in text
    assert "NOTE: Setting a non-zero max_batch_size" in text


def test_a_scalar_has_no_batch_dimension(signature):
    assert "input 'a' has no shape but model requires batch dimension" in refused(
        signature(ONE), Tensor("a", dtypes.FP32, (), raw=bytes(4))
    )


def test_too_many_rows_are_refused(signature):
    assert "inference request batch-size must be <= 8 for 'm'" in refused(signature(ONE), a(9))


@pytest.mark.parametrize("length", [0, 4])
def test_no_rows_are_refused(signature, length):
    config = 'input [ { name: "a" data_type: TYPE_FP32 dims: [ -1 ] } ]'

    assert refused(signature(config), a(0, length)).endswith(
        f"inference request batch-size must be >= 1 for 'm': input 'a' has shape [0,{length}]"
    )


def test_a_model_without_batching_accepts_an_empty_tensor(signature):
    config = 'input [ { name: "a" data_type: TYPE_FP32 dims: [ -1, 4 ] } ]'

    assert admit(signature(config, 0), a(0)).rows == 1


def test_inputs_must_have_the_same_rows(signature):
    assert "input 'b' batch size does not match other inputs for 'm'" in refused(
        signature(PAIR), a(1), b(2)
    )


@pytest.mark.parametrize("size", [0, 15, 17, 32])
def test_the_number_of_bytes_must_fit_the_shape(signature, size):
    wrong = Tensor("a", dtypes.FP32, (1, 4), raw=bytes(size))

    assert (
        f"input byte size mismatch for input 'a' for model 'm'. Expected 16, got {size}"
        in refused(signature(ONE), wrong)
    )


@pytest.mark.parametrize(
    "raw,text",
    [
        (b"\x01\0\0\0", "incomplete string data"),
        (b"\x01\0\0\0a\x01\0", "expecting 4 bytes but only 2 bytes available"),
        (b"", "expected 1 string elements for inference input 'b' for model 'm', got 0"),
        (
            b"\0\0\0\0" * 2,
            "expected 1 string elements for inference input 'b' for model 'm', got 2",
        ),
        (b"\xff\xff\xff\xff", "incomplete string data"),
    ],
)
def test_malformed_string_elements_are_refused(signature, raw, text):
    wrong = Tensor("b", dtypes.BYTES, (1, 1), raw=raw)

    assert text in refused(signature(PAIR), a(), wrong)


@pytest.mark.parametrize("shape", [(2**62,), (2**32, 2**32), (2**63 - 1, 3)])
def test_a_shape_that_overflows_is_refused(signature, shape):
    dims = ", ".join(["-1"] * len(shape))
    found = signature(f'input [ {{ name: "a" data_type: TYPE_FP32 dims: [ {dims} ] }} ]', 0)

    text = refused(found, Tensor("a", dtypes.FP32, shape, raw=bytes(4)))

    assert "exceed" in text


def test_a_negative_dimension_is_refused(signature):
    found = signature('input [ { name: "a" data_type: TYPE_FP32 dims: [ -1 ] } ]', 0)

    assert "contains one or more invalid dimensions" in refused(
        found, Tensor("a", dtypes.FP32, (-2,), raw=b"")
    )


def test_zero_elements_are_allowed(signature):
    found = signature('input [ { name: "a" data_type: TYPE_FP32 dims: [ -1 ] } ]', 0)

    assert admit(found, Tensor("a", dtypes.FP32, (0,), raw=b"")).rows == 1


@pytest.mark.parametrize(
    "dims,reshape,shape,seen",
    [
        ("1", "", (3, 1), (3,)),
        ("4", "2, 2", (3, 4), (3, 2, 2)),
        ("-1, 1", "-1", (3, 5, 1), (3, 5)),
        ("1, -1, 2, -1", "-1, 2, -1", (3, 1, 5, 2, 6), (3, 5, 2, 6)),
    ],
)
def test_a_reshaped_input_reaches_the_model_in_the_models_shape(
    signature, dims, reshape, shape, seen
):
    found = signature(
        f'input [ {{ name: "a" data_type: TYPE_UINT8 dims: [ {dims} ] '
        f"reshape {{ shape: [ {reshape} ] }} }} ]"
    )
    count = int(np.prod(shape))

    request = admit(found, Tensor("a", dtypes.UINT8, shape, raw=bytes(range(count))))

    assert request.inputs["a"].shape == seen
    assert request.inputs["a"].array.ravel().tolist() == list(range(count))


def test_requests_with_fixed_shapes_share_a_batch(signature):
    assert group_key(signature(ONE)) is None


def test_requests_with_equal_variable_shapes_share_a_batch(signature):
    key = group_key(signature(PAIR))

    one, same, other = (
        admit(signature(PAIR), a(), b(items=items)) for items in ([b"x"], [b"y"], [b"x", b"y"])
    )

    assert key(one) == key(same) != key(other)


def test_requests_with_ragged_inputs_share_a_batch(signature):
    ragged = PAIR.replace("dims: [ -1 ]", "dims: [ -1 ] allow_ragged_batch: true")

    assert group_key(signature(ragged)) is None


def test_requests_with_the_same_inputs_share_a_batch(signature):
    found = signature(OPTIONAL)
    key = group_key(found)
    second = Tensor("b", dtypes.FP32, (1, 1), raw=bytes(4))

    assert key(admit(found, a(1, 1))) != key(admit(found, a(1, 1), second))
    assert key(admit(found, a(1, 1), second)) == key(admit(found, second, a(1, 1)))


PIXELS = 'input [ { name: "PIXELS" data_type: TYPE_FP32 dims: [ 4 ] } ]'


def test_an_unknown_input_gets_the_nearest_name_and_those_that_exist(signature):
    wrong = Tensor("pixels", dtypes.FP32, (1, 4), raw=bytes(16))

    assert refused(signature(PIXELS), wrong).endswith(
        "unexpected inference input 'pixels' for model 'm'; did you mean 'PIXELS'?; its inputs: ['PIXELS']"
    )


def test_an_error_lists_few_of_many_outputs(signature):
    outputs = ", ".join(f'{{ name: "y{i}" data_type: TYPE_FP32 dims: [ 1 ] }}' for i in range(10))
    request = InferenceRequest("m", {"a": a()}, outputs=(RequestedOutput("z"),))

    with pytest.raises(CoreError) as error:
        Admission(signature(f"{ONE} output [ {outputs} ]"))(request)
    assert error.value.message.endswith(
        "unexpected inference output 'z' for model 'm'; its outputs: "
        "['y0','y1','y2','y3','y4','y5','y6','y7'] and 2 more"
    )
