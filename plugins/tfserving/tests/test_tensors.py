"""TensorProto: what clients send becomes tensors, and tensors become what clients read."""

import numpy as np
import pytest
from frontend_tfserving.rpc import messages, varints
from frontend_tfserving.rpc.tensors import (
    MOST_REPEATED_BYTES,
    made_bytes,
    proto_of,
    tensor_of,
)
from frontend_tfserving.types import NUMBERS
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from core import dtypes
from core.errors import CoreError
from core.tensor import Tensor

from .protos import tensor

NUMERIC = [each for each in dtypes.ALL if each is not dtypes.BYTES]


def sent(proto):
    """The message of the client as the server reads it."""
    return messages.PackedTensor.FromString(proto.SerializeToString())


def read(proto):
    return tensor_of("x", sent(proto))


def answered(tensor):
    """The message of the server as the client reads it."""
    return messages.TensorProto.FromString(proto_of(tensor).SerializeToString())


def a_tensor(data, dtype):
    shape = data.draw(arrays.array_shapes(min_dims=0, min_side=0))
    array = data.draw(arrays.arrays(dtype.numpy, shape))
    return Tensor("x", dtype, array.shape, array=array)


@given(st.data(), st.sampled_from(NUMERIC))
def test_every_tensor_comes_back(data, dtype):
    given = a_tensor(data, dtype)

    found = read(answered(given))

    assert (found.dtype, found.shape) == (dtype, given.shape)
    assert found.array.tobytes() == given.array.tobytes()


@given(st.data(), st.sampled_from(NUMERIC))
def test_clients_find_each_number_in_the_field_of_its_datatype(data, dtype):
    given = a_tensor(data, dtype)

    found = answered(given)

    flat = given.array.ravel()
    expected = flat.view(np.uint16) if dtype is dtypes.FP16 else flat
    values = getattr(found, NUMBERS[dtype].field)
    np.testing.assert_array_equal(np.array(values, expected.dtype), expected)
    assert proto_of(given).SerializeToString(deterministic=True) == (
        found.SerializeToString(deterministic=True)
    )


@given(st.lists(st.binary()))
def test_every_text_comes_back(texts):
    array = np.empty(len(texts), object)
    array[:] = texts

    assert read(answered(Tensor("x", dtypes.BYTES, array.shape, array=array))).array.tolist() == (
        texts
    )


def test_fewer_values_repeat_the_last_one():
    assert read(tensor(dtypes.INT32, [4], int_val=[1, 2])).array.tolist() == [1, 2, 2, 2]
    assert read(tensor(dtypes.INT32, [2])).array.tolist() == [0, 0]
    texts = read(tensor(dtypes.BYTES, [3], string_val=[b"a"])).array.tolist()
    assert texts == [b"a", b"a", b"a"]
    texts = read(tensor(dtypes.BYTES, [2], string_val=[b"a\0"])).array.tolist()
    assert texts == [b"a\0", b"a\0"]


@pytest.mark.parametrize(
    ("proto", "text"),
    [
        (messages.TensorProto(dtype=8), "has the datatype 8 of TensorFlow"),
        (tensor(dtypes.FP32, [-1]), "an unknown shape"),
        (tensor(dtypes.INT8, [1], int_val=[128]), "outside of the range of INT8"),
        (tensor(dtypes.FP16, [1], half_val=[65536]), "outside of the range of FP16"),
        (tensor(dtypes.BYTES, [1], tensor_content=b"a"), "send them in string_val"),
        (tensor(dtypes.FP32, [MOST_REPEATED_BYTES], float_val=[1]), "needs all of them"),
        (tensor(dtypes.FP32, [2**40, 2**40], float_val=[1]), "needs all of them"),
        (tensor(dtypes.BYTES, [2**16], string_val=[b"a" * 2**10]), "needs all of them"),
    ],
)
def test_a_wrong_tensor_is_refused(proto, text):
    with pytest.raises(CoreError, match=text):
        read(proto)


@pytest.mark.parametrize(
    ("shape", "text"),
    [([1] * 33, "33 dimensions; at most 32"), ([2**40, 2**40, 0], "too large")],
)
def test_a_shape_that_no_array_has_is_refused(shape, text):
    with pytest.raises(CoreError, match=text):
        read(tensor(dtypes.FP32, shape))


@pytest.mark.parametrize(
    ("field", "dtype", "packed"),
    [
        ("float_val", dtypes.FP32, b"abc"),
        ("double_val", dtypes.FP64, b"abcd"),
        ("int64_val", dtypes.INT64, b"\x01\x80"),
        ("int_val", dtypes.INT8, b"\xff" * 11),
        ("bool_val", dtypes.BOOL, b"\xff" * 10 + b"\x01"),
    ],
)
def test_bytes_that_are_no_numbers_are_refused(field, dtype, packed):
    proto = sent(tensor(dtype, [1]))
    getattr(proto, field).append(packed)

    with pytest.raises(CoreError, match=f"bytes in {field}, which are no numbers of {dtype}"):
        tensor_of("x", proto)


@pytest.mark.parametrize(
    ("proto", "size"),
    [
        (tensor(dtypes.FP32, [2, 3], float_val=range(6)), 24),
        (tensor(dtypes.FP32, [1000], float_val=[1]), 4000),
        (tensor(dtypes.BYTES, [1000], string_val=[b"a"]), 8000),
        (tensor(dtypes.BYTES, [1000], string_val=[b"a" * 20_000, b"b" * 96]), 100_000),
        (tensor(dtypes.BYTES, [2], string_val=[b"a" * 20_000] * 2), 16),
        (tensor(dtypes.BYTES, [2**20], string_val=[b"a" * 2**10]), MOST_REPEATED_BYTES),
        (tensor(dtypes.FP32, [1], tensor_content=b"abcd"), 0),
        (tensor(dtypes.FP32, [2**40], float_val=[1]), MOST_REPEATED_BYTES),
        (tensor(dtypes.FP32, [-1], float_val=[1]), 0),
        (tensor(dtypes.FP32, [2] * 33), 0),
        (messages.TensorProto(dtype=8), 0),
    ],
)
def test_the_bytes_that_an_input_makes_are_known_before(proto, size):
    assert made_bytes(sent(proto)) == size


@given(st.lists(st.integers(-(2**63), 2**63 - 1)), st.integers(1, 20))
def test_varints_are_those_of_protobuf(numbers, block):
    proto = messages.TensorProto(int64_val=numbers)
    plain = messages.PackedTensor.FromString(proto.SerializeToString()).int64_val
    packed = plain[0] if plain else b""

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(varints, "_BLOCK", max(block, varints._MOST_BYTES))
        assert varints.encode(np.array(numbers, np.int64)) == packed
        assert varints.decode(packed, np.dtype(np.int64)).tolist() == numbers
