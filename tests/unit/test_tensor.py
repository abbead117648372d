"""Tensor: two forms of the same elements."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from core import dtypes
from core.errors import CoreError, Kind
from core.tensor import Tensor

FIXED = [dtype for dtype in dtypes.ALL if dtype.byte_size]
shapes = arrays.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4)


@given(st.sampled_from(FIXED), shapes, st.data())
def test_raw_and_array_are_two_forms_of_the_same_elements(dtype, shape, data):
    array = data.draw(arrays.arrays(dtype.numpy, shape))

    raw = bytes(Tensor.of("x", array, dtype).raw)
    back = Tensor("x", dtype, shape, raw=raw).array

    assert raw == array.tobytes()
    assert back.tobytes() == array.tobytes()
    assert back.shape == shape


@given(shapes, st.data())
def test_bytes_elements_survive_both_ways(shape, data):
    array = data.draw(arrays.arrays(object, shape, elements=st.binary(max_size=9)))

    tensor = Tensor.of("x", array)
    back = Tensor("x", dtypes.BYTES, shape, raw=tensor.raw)

    assert tensor.dtype is dtypes.BYTES
    assert back.array.tolist() == array.tolist()
    assert back.byte_size == len(tensor.raw)


@pytest.mark.parametrize(
    "array,dtype",
    [
        (np.zeros(2, np.float16), dtypes.FP16),
        (np.zeros(2, bool), dtypes.BOOL),
        (np.zeros(2, ">i4"), dtypes.INT32),
        (np.array(["a"]), dtypes.BYTES),
        (np.array([b"a"]), dtypes.BYTES),
        (np.array([b"a"], object), dtypes.BYTES),
    ],
)
def test_the_datatype_follows_from_the_array(array, dtype):
    assert Tensor.of("x", array).dtype is dtype


def test_big_endian_arrays_are_written_little_endian():
    assert bytes(Tensor.of("x", np.array([1], ">i4")).raw) == b"\x01\0\0\0"


def test_arrays_that_are_not_contiguous_are_written_row_by_row():
    table = np.arange(6, dtype=np.int32).reshape(2, 3)

    assert bytes(Tensor.of("x", table.T).raw) == table.T.tobytes()


def test_bf16_is_kept_as_bit_patterns():
    bits = np.array([0x3F80, 0xC000], np.uint16)

    tensor = Tensor.of("x", bits, dtypes.BF16)

    assert tensor.dtype is dtypes.BF16
    assert bytes(tensor.raw) == bits.tobytes()


def test_an_array_without_a_datatype_is_refused_by_name():
    with pytest.raises(CoreError, match="'x' has the numpy type complex128") as error:
        Tensor.of("x", np.zeros(1, complex))
    assert error.value.kind is Kind.INVALID


def test_a_view_of_wire_bytes_cannot_be_written():
    with pytest.raises(ValueError, match="read-only"):
        Tensor("x", dtypes.INT8, (2,), raw=b"ab").array[0] = 1


def test_a_reshaped_tensor_shares_its_bytes():
    raw = b"abcd"

    tensor = Tensor("x", dtypes.UINT8, (4,), raw=raw).reshaped((2, 2))

    assert tensor.raw is raw
    assert tensor.array.tolist() == [[97, 98], [99, 100]]


@pytest.mark.parametrize("dtype", dtypes.ALL)
def test_names_numbers_and_config_names_find_their_datatype(dtype):
    assert dtypes.BY_NAME[dtype.name] is dtype
    assert dtypes.BY_NUMBER[dtype.number] is dtype
    assert dtypes.BY_CONFIG_NAME[dtype.config_name] is dtype


@pytest.mark.parametrize("texts", [np.array(["a", "\u2603"]), np.array(["a", "\u2603"], object)])
def test_the_elements_of_a_bytes_array_are_always_bytes(texts):
    assert Tensor.of("x", texts).array.tolist() == [b"a", "\u2603".encode()]
