"""Messages between two processes against struct."""

import random
import socket
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.native.frames import Frame, Reader, message

HEADER = struct.Struct("=IBxHQ")
NUMBERS = st.integers(0, 2**64 - 1)
MESSAGES = st.lists(
    st.tuples(
        st.integers(0, 255),
        NUMBERS,
        st.lists(NUMBERS, max_size=5),
        st.lists(st.binary(max_size=100), max_size=4),
    ),
    max_size=20,
)


@pytest.fixture
def pair():
    one, other = socket.socketpair()
    yield one, other
    one.close()
    other.close()


def plainly(kind, number, released, parts):
    content = b"".join(parts)
    numbers = struct.pack(f"={len(released)}Q", *released)
    header = HEADER.pack(len(numbers) + len(content), kind, len(released), number)
    return header + numbers + content


def taken(reader):
    """Return the received items, as (kind, number, released, content)."""
    found = []
    while (frame := reader.next()) is not None:
        found.append((frame.kind, frame.number, frame.released, frame.content))
    return found


@given(MESSAGES)
def test_a_message_is_its_header_its_numbers_and_its_parts(messages):
    for each in messages:
        assert message(*each) == plainly(*each)


@given(MESSAGES, st.integers(1, 200))
def test_frames_are_complete_however_the_bytes_are_split(messages, step):
    one, other = socket.socketpair()
    with one, other:
        reader = Reader(other, 1 << 20)
        data = b"".join(plainly(*each) for each in messages)
        found = []
        for at in range(0, len(data), step):
            one.sendall(data[at : at + step])
            assert reader.receive()
            found += taken(reader)

    assert found == [(k, n, tuple(released), b"".join(p)) for k, n, released, p in messages]


def test_frames_larger_than_the_buffer_are_complete(pair):
    one, other = pair
    reader = Reader(other, 1 << 30)
    contents = [b"small", *(random.Random(n).randbytes(n) for n in (1_000_000, 3, 70_000))]
    data = b"".join(message(1, 0, (), [content]) for content in contents)
    found = []
    for at in range(0, len(data), 50_000):
        one.sendall(data[at : at + 50_000])
        reader.receive()
        found += taken(reader)

    assert [content for *_, content in found] == contents


def test_receive_returns_false_at_the_end_of_the_channel(pair):
    one, other = pair
    reader = Reader(other, 100)
    one.close()

    assert not reader.receive()


def test_a_non_blocking_socket_without_data_raises(pair):
    one, other = pair
    reader = Reader(other, 100)
    other.setblocking(False)

    with pytest.raises(BlockingIOError):
        reader.receive()

    one.sendall(message(1, 2, (), [b"now"]))
    assert reader.receive()
    assert taken(reader) == [(1, 2, (), b"now")]


@pytest.mark.parametrize("header", [(101, 1, 0, 0), (2**32 - 1, 1, 0, 0), (8, 1, 2, 0)], ids=str)
def test_an_invalid_header_is_refused_after_the_valid_frames(pair, header):
    one, other = pair
    reader = Reader(other, 100)
    one.sendall(message(1, 2, (), [bytes(100)]) + HEADER.pack(*header))
    reader.receive()
    assert reader.next().number == 2

    for _ in range(2):
        with pytest.raises(ValueError, match=r"message of \d+ bytes with \d numbers"):
            reader.next()


@pytest.mark.parametrize(
    "wrong", [(256, 0, (), []), (1, 2**64, (), []), (1, 0, (-1,), [])], ids=str
)
def test_a_number_out_of_range_is_refused(wrong):
    with pytest.raises(OverflowError):
        message(*wrong)


def test_more_numbers_than_a_header_can_hold_are_refused():
    with pytest.raises(ValueError, match="65536 numbers"):
        message(1, 0, range(1 << 16), [])


def test_a_frame_can_be_created():
    frame = Frame(1, 2**64 - 1, (3,), b"four")

    assert (frame.kind, frame.number, frame.released, frame.content) == (
        1,
        2**64 - 1,
        (3,),
        b"four",
    )
