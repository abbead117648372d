"""The wire form of BYTES, against plain Python."""

import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.native import strings

elements = st.lists(st.binary(max_size=40), max_size=30)


def oracle(items):
    return b"".join(struct.pack("<I", len(item)) + item for item in items)


def objects(items):
    array = np.empty(len(items), dtype=object)
    array[:] = items
    return array


@given(elements)
def test_encode_writes_length_and_bytes_of_each_element(items):
    assert strings.encode(objects(items)) == oracle(items)


@given(elements)
def test_decode_returns_the_strings_that_encode_wrote(items):
    assert strings.decode(oracle(items), len(items)).tolist() == items


@given(st.lists(st.text(max_size=20), max_size=10))
def test_text_is_encoded_as_utf8(items):
    assert strings.encode(objects(items)) == oracle([item.encode() for item in items])


def test_rows_are_encoded_in_row_major_order():
    table = objects([b"a", b"b", b"c", b"d"]).reshape(2, 2)

    assert strings.encode(table.T) == oracle([b"a", b"c", b"b", b"d"])


def test_fixed_width_numpy_text_and_bytes_are_encoded_element_by_element():
    assert strings.encode(np.array([b"ab", b"c"])) == oracle([b"ab", b"c"])
    assert strings.encode(np.array(["\u2603"])) == oracle(["\u2603".encode()])


def test_other_objects_are_encoded_as_their_text():
    assert strings.encode(objects([7, 1.5])) == oracle([b"7", b"1.5"])


@given(elements, st.binary(max_size=3))
def test_count_returns_complete_elements_and_bytes_left(items, rest):
    assert strings.count(oracle(items) + rest) == (len(items), len(rest))


@given(elements, st.data())
def test_count_of_cut_data_never_reads_past_the_end(items, data):
    wire = oracle(items)
    cut = data.draw(st.integers(0, len(wire)))

    found, left = strings.count(wire[:cut])

    assert len(oracle(items[:found])) + left == cut


def test_an_element_that_claims_four_gigabytes_is_not_counted():
    assert strings.count(struct.pack("<I", 0xFFFFFFFF) + b"abc") == (0, 7)


@pytest.mark.parametrize("wire,count", [(b"\x01\0\0", 1), (b"\x02\0\0\0a", 1), (b"", 1)])
def test_data_that_ends_early_is_refused(wire, count):
    with pytest.raises(ValueError, match="ends within element 0"):
        strings.decode(wire, count)


def test_data_after_the_last_element_is_refused():
    with pytest.raises(ValueError, match="3 bytes after its 1 elements"):
        strings.decode(oracle([b"a"]) + b"xyz", 1)


def test_decode_reads_any_buffer_without_copying_it_first():
    wire = memoryview(b"junk" + oracle([b"a", b"bc"]))[4:]

    assert strings.decode(wire, 2).tolist() == [b"a", b"bc"]
