"""JSON data ↔ tensors, against numpy and Python's json."""

import json
import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

from core import dtypes
from core.errors import CoreError, Kind
from core.tensor import Tensor
from frontends.http.codec.json_tensor import read_tensor
from frontends.http.codec.json_text import read_json
from frontends.http.native.infer_response import write_data

MOST = 2**30
INTEGERS = [
    dtypes.UINT8,
    dtypes.UINT16,
    dtypes.UINT32,
    dtypes.UINT64,
    dtypes.INT8,
    dtypes.INT16,
    dtypes.INT32,
    dtypes.INT64,
]
FLOATS = [dtypes.FP32, dtypes.FP64]
shapes = hnp.array_shapes(min_dims=0, max_dims=4, min_side=0, max_side=4)


def read(dtype, data, shape=None, most=MOST):
    return read_tensor("x", dtype, (len(data),) if shape is None else shape, data, most)


def refused(dtype, data, shape=None, most=MOST):
    with pytest.raises(CoreError) as caught:
        read(dtype, data, shape, most)
    assert caught.value.kind is Kind.INVALID
    assert "x" in caught.value.message or "depth" in caught.value.message
    return caught.value.message


@pytest.mark.parametrize("dtype", [dtypes.BOOL, *INTEGERS, *FLOATS])
@given(data=st.data())
def test_numbers_of_any_shape_go_in_and_out_as_numpy_has_them(dtype, data):
    array = data.draw(hnp.arrays(dtype.numpy, data.draw(shapes)))
    nested = json.loads(json.dumps(array.tolist()))
    nested = nested if isinstance(nested, list) else [nested]

    tensor = read_tensor("x", dtype, array.shape, nested, MOST)
    written = read_json(write_data(Tensor.of("y", array)))

    assert bytes(tensor.raw) == array.tobytes() or np.isnan(array).any()
    np.testing.assert_array_equal(tensor.array, array)
    assert tensor.array.shape == array.shape
    np.testing.assert_array_equal(np.array(written, dtype.numpy), array.reshape(-1))


@given(hnp.arrays(object, shapes, elements=st.text()))
def test_strings_of_any_shape_go_in_and_out(array):
    flat = array.reshape(-1).tolist()

    tensor = read_tensor("x", dtypes.BYTES, array.shape, flat, MOST)

    assert tensor.array.shape == array.shape
    assert tensor.array.reshape(-1).tolist() == [text.encode() for text in flat]
    assert json.loads(write_data(tensor)) == flat


@pytest.mark.parametrize("dtype", INTEGERS)
@given(data=st.data())
def test_integers_outside_the_datatype_are_refused(dtype, data):
    limits = np.iinfo(dtype.numpy)
    number = data.draw(
        st.integers(max_value=limits.min - 1) | st.integers(min_value=limits.max + 1)
    )

    assert str(number)[:40] in refused(dtype, [0, number])


@pytest.mark.parametrize("number", [1e39, -1e39, 3.5e38, 10**39])
def test_numbers_outside_fp32_are_refused(number):
    assert "out of the range of FP32" in refused(dtypes.FP32, [1.0, number, math.inf])


@pytest.mark.parametrize("dtype", FLOATS)
def test_infinities_are_in_the_range_of_floats(dtype):
    found = read(dtype, [math.inf, -math.inf, math.nan, 1]).array
    np.testing.assert_array_equal(found, [math.inf, -math.inf, math.nan, 1])


@pytest.mark.parametrize("number", [10**400, -(10**400)])
@pytest.mark.parametrize("dtype", FLOATS)
def test_integers_beyond_any_float_are_refused(dtype, number):
    refused(dtype, [number])


@pytest.mark.parametrize(
    "dtype,wrong",
    [
        *[(dtype, value) for dtype in FLOATS for value in ("1", True, None, {})],
        *[(dtype, value) for dtype in INTEGERS for value in ("1", True, None, {}, 1.5, 1.0)],
        *[(dtypes.BOOL, value) for value in (0, 1, "true", None, 1.0)],
        *[(dtypes.BYTES, value) for value in (1, None, True, {}, 1.5)],
    ],
)
def test_values_of_another_type_are_refused_wherever_they_are(dtype, wrong):
    right = {dtypes.BOOL: True, dtypes.BYTES: "a"}.get(dtype, 1)

    assert "attempt to access JSON" in refused(dtype, [right, right, wrong])
    assert "attempt to access JSON" in refused(dtype, [wrong])


@pytest.mark.parametrize("dtype", [dtypes.FP16, dtypes.BF16])
def test_halves_are_refused_in_both_directions(dtype):
    assert f"receiving {dtype} data via JSON is not supported" in refused(dtype, [1])
    with pytest.raises(CoreError, match=f"sending {dtype} data via JSON is not supported"):
        write_data(Tensor("y", dtype, (1,), raw=b"\0\0"))


def test_data_may_be_nested_otherwise_than_the_shape():
    found = read(dtypes.INT32, [[1, 2], 3, [[4]], []], (2, 2))
    assert found.array.tolist() == [[1, 2], [3, 4]]


@pytest.mark.parametrize("depth,right", [(100, True), (101, False), (900, False)])
def test_data_may_be_nested_a_hundred_deep(depth, right):
    data = [1]
    for _ in range(depth - 1):
        data = [data]

    if right:
        assert read(dtypes.INT32, data, (1,)).array.tolist() == [1]
    else:
        assert "nesting depth" in refused(dtypes.INT32, data, (1,))


@pytest.mark.parametrize("count", [0, 1, 3, 5])
@pytest.mark.parametrize("dtype,value", [(dtypes.FP32, 1.0), (dtypes.BYTES, "a")])
def test_the_number_of_elements_must_be_that_of_the_shape(dtype, value, count):
    text = refused(dtype, [value] * count, (2, 2))
    assert f"it has {count} elements, shape [2, 2] takes 4" in text


def test_data_is_not_read_for_a_shape_without_elements():
    assert read(dtypes.FP32, [1, "2"], (2, 0)).byte_size == 0
    assert read_tensor("x", dtypes.BYTES, (0,), None, MOST).array.tolist() == []


@pytest.mark.parametrize("shape", [(2**40,), (2**62,), (2**63 - 1,)])
@pytest.mark.parametrize("dtype", [dtypes.FP32, dtypes.BYTES, dtypes.BOOL])
def test_a_shape_beyond_the_limit_is_refused_before_an_allocation(dtype, shape):
    assert "exceeds the maximum allowed value" in refused(dtype, [True], shape)


def test_a_shape_of_more_elements_than_63_bits_count_is_refused():
    assert "total element count" in refused(dtypes.FP32, [1], (2**32, 2**32))
    assert "total element count" in refused(dtypes.FP32, [1], (2**62,) * 1000)
    assert read(dtypes.FP32, [], (2**62, 2**62, 0)).count == 0


def test_strings_count_with_their_bytes_for_the_limit():
    read(dtypes.BYTES, ["a" * 80], most=84)
    assert "(85 bytes)" in refused(dtypes.BYTES, ["a" * 81], most=84)


@pytest.mark.parametrize("data", [1, None, "1", {}, True])
def test_data_must_be_a_list(data):
    with pytest.raises(CoreError, match="non-array as array"):
        read_tensor("x", dtypes.FP32, (1,), data, MOST)


def test_a_shape_of_more_dimensions_than_numpy_has_is_no_error_yet():
    for dtype, value in ((dtypes.FP32, 1.0), (dtypes.BYTES, "a")):
        assert read(dtype, [value], (1,) * 200).byte_size > 0


def test_floats_have_the_fewest_digits_that_give_the_same_value():
    values = np.array([42.0, 0.1, -0.0, 1e-7], np.float32)
    assert write_data(Tensor.of("y", values)) == b"[42.0,0.1,-0.0,1e-7]"


def test_infinities_and_nan_are_written_like_triton():
    values = np.array([np.nan, 1, np.inf, -np.inf, 2], np.float64)
    assert write_data(Tensor.of("y", values)) == b"[NaN,1.0,Infinity,-Infinity,2.0]"


def test_nonzero_bytes_of_bool_are_true():
    assert write_data(Tensor("y", dtypes.BOOL, (3,), raw=b"\x00\x01\x02")) == b"[false,true,true]"


def test_arrays_that_are_not_contiguous_are_written_row_by_row():
    array = np.arange(6, dtype=np.int32).reshape(2, 3).T
    assert write_data(Tensor.of("y", array)) == b"[0,3,1,4,2,5]"


@pytest.mark.parametrize(
    "array",
    [
        np.array([b"a", b"\xc3\xa4"], object),
        np.array(["a", "\u00e4"], object),
        np.array(["a", "\u00e4"]),
        np.array([b"a", b"\xc3\xa4"]),
    ],
)
def test_strings_of_a_backend_may_be_bytes_or_text(array):
    assert json.loads(write_data(Tensor.of("y", array))) == ["a", "\u00e4"]


def test_bytes_that_are_no_utf8_are_written_unchanged():
    tensor = Tensor("y", dtypes.BYTES, (2,), raw=b'\x02\0\0\0\xff"\x01\0\0\0a')
    assert write_data(tensor) == b'["\xff\\"","a"]'
