"""Bytes of many things as one, and some of them, against bytes.join and slices."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from core import dtypes
from core.native.arrays import joined, length, part

FIXED = [dtype.numpy for dtype in dtypes.ALL if dtype.byte_size]
ARRAYS = st.sampled_from(FIXED).flatmap(
    lambda dtype: arrays.arrays(dtype, arrays.array_shapes(min_dims=0, min_side=0, max_side=4))
)
STEPS = st.integers(1, 3)
PARTS = st.lists(
    st.one_of(
        st.binary(max_size=100),
        st.binary(max_size=100).map(memoryview),
        ARRAYS,
        st.tuples(ARRAYS, STEPS).map(lambda a: a[0].T[:: a[1]] if a[0].ndim else a[0]),
    ),
    max_size=8,
)


def octets(value):
    return value.tobytes() if isinstance(value, np.ndarray) else bytes(value)


@given(PARTS, st.sampled_from([1, 2, 8, 64]))
def test_parts_begin_at_multiples_of_the_alignment(parts, alignment):
    expected = b""
    for each in parts:
        expected += octets(each) + bytes(-len(octets(each)) % alignment)

    assert joined(parts, alignment) == expected
    assert [length(each) for each in parts] == [len(octets(each)) for each in parts]


def test_an_array_of_objects_is_refused():
    with pytest.raises(ValueError, match="objects"):
        joined([np.array([b"text"], object)], 8)


@given(st.binary(max_size=50), st.integers(-2, 60), st.integers(-2, 60))
def test_a_part_of_bytes_is_a_slice(data, start, size):
    if start < 0 or size < 0 or start + size > len(data):
        with pytest.raises(ValueError, match=f"of {len(data)}"):
            part(data, start, size)
        return

    assert part(data, start, size) == data[start : start + size]


def test_a_part_of_memory_is_a_view_of_it():
    memory = bytearray(range(100))

    view = part(memory, 10, 5)
    memory[10] = 77

    assert view.tolist() == [77, 11, 12, 13, 14]
