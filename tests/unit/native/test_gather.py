"""gather against bytes.join."""

import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from core import dtypes
from core.native.gather import gather, joined

FIXED = [dtype.numpy for dtype in dtypes.ALL if dtype.byte_size]


@given(st.lists(st.binary(max_size=200), max_size=20), st.integers(0, 7))
def test_parts_follow_each_other_from_the_offset_on(parts, offset):
    whole = b"".join(parts)
    out = bytearray(b"\xee" * (offset + len(whole) + 3))

    copied = gather(parts, out, offset)

    assert copied == len(whole)
    assert out == b"\xee" * offset + whole + b"\xee" * 3


@given(
    st.lists(st.binary(max_size=200), max_size=20), st.integers(0, 7), st.sampled_from([1, 3, 64])
)
def test_gaps_between_aligned_parts_are_not_written(parts, offset, alignment):
    expected = bytearray(b"\xee" * (offset + 21 * 264))
    at = end = 0
    for each in parts:
        at = end + -end % alignment
        end = at + len(each)
        expected[offset + at : offset + end] = each
    out = bytearray(b"\xee" * len(expected))

    assert gather(parts, out, offset, alignment) == end
    assert out == expected


@given(st.sampled_from(FIXED), st.data())
def test_rows_of_arrays_become_one_array(dtype, data):
    columns = data.draw(st.integers(1, 5))
    parts = [
        data.draw(arrays.arrays(dtype, (rows, columns)))
        for rows in data.draw(st.lists(st.integers(1, 4), min_size=1, max_size=5))
    ]
    expected = np.concatenate(parts)
    out = np.empty_like(expected)

    gather([memoryview(part).cast("B") for part in parts], memoryview(out).cast("B"))

    assert out.tobytes() == expected.tobytes()


def test_large_parts_are_copied_too():
    parts = [np.full(300_000, value, np.uint8) for value in range(3)]
    out = bytearray(900_000)

    gather(parts, out)

    assert bytes(out) == np.concatenate(parts).tobytes()


@pytest.mark.parametrize("offset", [-1, 5, 100])
def test_parts_that_do_not_fit_are_refused_and_not_written(offset):
    out = bytearray(8)

    with pytest.raises(ValueError, match="do not fit into 8 bytes"):
        gather([b"abcd"], out, offset)

    assert out == bytes(8)


def test_a_target_that_cannot_be_written_is_refused():
    with pytest.raises(BufferError):
        gather([b"a"], b"abc")


def test_a_part_that_is_not_contiguous_is_refused():
    with pytest.raises((BufferError, ValueError), match="contiguous"):
        gather([np.zeros((4, 4), np.uint8)[:, ::2]], bytearray(8))


@pytest.mark.parametrize("size", [0, 1, 100_000])
def test_joined_parts_are_bytes_of_all(size):
    content = random.Random(size).randbytes(size)
    parts = [content, memoryview(content)[1:], np.frombuffer(content, np.uint8), bytearray(content)]

    assert joined(parts) == content + content[1:] + content + content
    assert joined([]) == b""


def test_a_part_that_is_no_buffer_is_refused():
    with pytest.raises(TypeError):
        joined([b"a", "b"])


def test_a_part_of_joined_that_is_not_contiguous_is_refused():
    with pytest.raises(BufferError):
        joined([memoryview(b"abcd")[::2]])
