"""Children without compiled modules use Python, with the same results."""

import socket
import sys

import numpy as np
import pytest
from backend_python import compiled, plain, protocol
from hypothesis import given
from hypothesis import strategies as st

NUMBERS = st.integers(0, 2**64 - 1)
DTYPES = st.sampled_from([np.uint8, np.bool_, np.float16, np.int64, np.float64, "S3"])


@st.composite
def arrays(draw, contiguous=False):
    """Arrays of 0 to 3 dimensions, in any order of their elements."""
    shape = tuple(draw(st.lists(st.integers(0, 4), max_size=3)))
    array = np.random.default_rng(draw(st.integers(0, 99))).integers(0, 9, shape)
    array = array.astype(draw(DTYPES))
    return array if contiguous or draw(st.booleans()) else array.T


def buffers(contiguous=False):
    return st.one_of(
        st.binary(max_size=100),
        st.binary(max_size=100).map(bytearray),
        st.binary(max_size=100).map(memoryview),
        arrays(contiguous),
    )


def outcome(function, *arguments):
    try:
        return function(*arguments)
    except Exception as error:
        return type(error)


def test_both_have_the_same_names():
    assert set(compiled.__all__) <= set(vars(plain))


@given(st.integers(0, 255), NUMBERS, st.lists(NUMBERS, max_size=9), st.lists(buffers()))
def test_messages_have_the_same_bytes(kind, number, released, parts):
    made = plain.message(kind, number, tuple(released), parts)

    assert made == compiled.message(kind, number, tuple(released), parts)


@pytest.mark.parametrize(
    "kind,number,released,parts",
    [
        (256, 0, (), []),
        (1, -1, (), []),
        (1, 2**64, (), []),
        (1, 0, (2**64,), []),
        (1, 0, (0,) * 65536, []),
        (1, 0, (), [np.array(["a"], object)]),
        (1, 0, (), [memoryview(b"abcd")[::2]]),
    ],
    ids=str,
)
def test_an_invalid_message_is_refused_in_both_implementations(kind, number, released, parts):
    refused = outcome(plain.message, kind, number, released, parts)

    assert refused is outcome(compiled.message, kind, number, released, parts)
    assert issubclass(refused, (ValueError, OverflowError, BufferError))


@given(st.lists(buffers()), st.sampled_from([1, 8, 64]))
def test_parts_are_joined_alike(parts, alignment):
    assert plain.joined(parts, alignment) == compiled.joined(parts, alignment)


@given(
    st.lists(buffers(contiguous=True)),
    st.integers(-1, 300),
    st.integers(0, 600),
    st.sampled_from([0, 1, 8, 64]),
)
def test_parts_are_gathered_alike(parts, offset, room, alignment):
    found, expected = bytearray(room), bytearray(room)

    end = outcome(plain.gather, parts, found, offset, alignment)

    assert end == outcome(compiled.gather, parts, expected, offset, alignment)
    assert found == expected


@given(st.data())
def test_frames_are_cut_alike_wherever_the_stream_is_cut(data):
    messages = data.draw(
        st.lists(
            st.tuples(
                st.integers(0, 255), NUMBERS, st.lists(NUMBERS, max_size=3), st.binary(max_size=80)
            ),
            max_size=5,
        )
    )
    stream = b"".join(compiled.message(k, n, r, [c]) for k, n, r, c in messages)
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=6)))

    def frames(module):
        ours, theirs = socket.socketpair()
        with ours, theirs:
            reader = module.Reader(theirs, 1 << 20)
            found = []
            for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
                if end > start:
                    ours.sendall(stream[start:end])
                    assert reader.receive()
                while (frame := reader.next()) is not None:
                    found.append((frame.kind, frame.number, frame.released, frame.content))
            ours.close()
            assert not reader.receive()
            return found

    assert frames(plain) == frames(compiled)
    assert frames(plain) == [(k, n, tuple(r), c) for k, n, r, c in messages]


@pytest.mark.parametrize("head", ["too long", "more numbers than bytes"])
def test_a_header_that_is_none_is_refused(head):
    size, count = (101, 0) if head == "too long" else (8, 2)
    ours, theirs = socket.socketpair()
    with ours, theirs:
        reader = plain.Reader(theirs, 100)
        ours.sendall(plain._HEADER.pack(size, 1, count, 0))
        reader.receive()

        with pytest.raises(ValueError, match=f"message of {size} bytes with {count} numbers"):
            reader.next()


def test_a_message_of_any_length_arrives_in_parts():
    content = bytes(range(256)) * 2000
    ours, theirs = socket.socketpair()
    with ours, theirs:
        reader = plain.Reader(theirs, protocol.MOST_BYTES)
        whole = memoryview(plain.message(3, 7, (1, 2), [content]))
        frame = None
        while frame is None:
            whole = whole[ours.send(whole[:50_000]) :]
            reader.receive()
            frame = reader.next()

    assert (frame.kind, frame.number, frame.released) == (3, 7, (1, 2))
    assert frame.content == content


def test_a_reader_that_may_not_wait_raises_an_error():
    ours, theirs = socket.socketpair()
    with ours, theirs:
        theirs.setblocking(False)
        with pytest.raises(BlockingIOError):
            plain.Reader(theirs, 100).receive()


def test_a_server_uses_compiled_modules():
    assert sys.modules["backend_python.compiled"] is compiled
    assert protocol.Reader is compiled.Reader is not plain.Reader
