"""Bytes of many things as one, and some of them, against bytes.join and slices."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from core import dtypes
from core.native.arrays import joined, joint_view, length, part

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


def rows_of(whole, *counts):
    ends = np.cumsum(counts).tolist()
    return [whole[end - count : end] for count, end in zip(counts, ends, strict=True)]


@given(
    st.lists(st.integers(1, 3), min_size=1, max_size=5), st.sampled_from(FIXED), st.integers(0, 2)
)
def test_rows_that_follow_each_other_are_one_view(counts, dtype, before):
    whole = np.arange((before + sum(counts) + 1) * 6).astype(dtype).reshape(-1, 2, 3)
    rows = rows_of(whole[before:], *counts)

    found = joint_view(rows, whole.dtype)

    assert found.tobytes() == b"".join(each.tobytes() for each in rows)
    assert found.shape == (sum(counts), 2, 3) and found.dtype is whole.dtype
    assert np.shares_memory(found, whole)
    assert not found.flags.writeable


def test_the_view_keeps_the_memory():
    found = joint_view(rows_of(np.full((4, 100_000), 7.0), 1, 3), np.dtype("float64"))

    assert (found == 7).all()


@pytest.mark.parametrize(
    "rows",
    [
        pytest.param(lambda whole: [whole[:1], whole[2:3]], id="a gap"),
        pytest.param(lambda whole: [whole[1:2], whole[:1]], id="another order"),
        pytest.param(lambda whole: [whole[:1], whole[:1]], id="the same row twice"),
        pytest.param(lambda whole: [whole[:1], whole[1:2].copy()], id="two arrays"),
        pytest.param(
            lambda whole: [whole[:1].copy(), whole[1:2]], id="two arrays, the first alone"
        ),
        pytest.param(lambda whole: [whole[:1, ::2], whole[1:2, ::2]], id="columns left out"),
        pytest.param(lambda whole: [whole[:2, 0], whole[2:4, 0]], id="one column"),
        pytest.param(lambda whole: [whole[:1].view("i4"), whole[1:2]], id="another datatype"),
        pytest.param(lambda whole: [whole[0, 0, ...]], id="no dimension"),
        pytest.param(lambda whole: [whole], id="an array of its own"),
    ],
)
def test_other_arrays_have_no_joint_view(rows):
    whole = np.zeros((4, 6), np.float32)

    assert joint_view(rows(whole), whole.dtype) is None


def test_bytes_that_two_tensors_share_have_no_joint_view():
    octets = bytes(16)

    rows = [np.frombuffer(octets, "f4", 2, offset) for offset in (0, 8)]

    assert joint_view(rows, rows[0].dtype) is None
