"""Large bodies on the fast path: the buffer that receives them."""

import json
import tracemalloc

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from unit.http.played import OTHER, Connection, binary, request

from frontends.http.native.body_receiver import BodyReceiver, RequestReceiver


@pytest.fixture
def connection():
    return Connection()


def test_a_body_in_many_pieces_is_put_together(connection):
    body = np.arange(200_000, dtype=np.float32).tobytes()
    connection.receive(binary(len(body)))
    for at in range(0, len(body), 60_000):
        connection.receive(body[at : at + 60_000])

    found = connection.replies[0].request.inputs["x"]
    assert bytes(found.raw) == body


@pytest.mark.parametrize("first", [0, 1, 65_536, 599_999, 600_000])
@pytest.mark.parametrize("behind", [b"", request("behind")], ids=["alone", "one behind it"])
def test_the_transport_reads_into_a_large_body_itself(connection, first, behind):
    body = np.arange(150_000, dtype=np.float32).tobytes()
    connection.receive(binary(len(body)) + body[:first])
    assert isinstance(connection.transport.protocol, BodyReceiver) == (first < 400_000)

    connection.receive(body[first:] + behind)

    assert connection.transport.protocol is connection.lane
    assert connection.transport.reading
    assert bytes(connection.replies[0].request.inputs["x"].raw) == body
    for which in range(len(connection.replies)):
        connection.answer(which)
    for turn in connection.turns:
        turn()
    assert connection.transport.sent.count(b"HTTP/1.1 200 OK") == (2 if behind else 1)


def test_a_connection_that_is_lost_within_a_large_body_is_forgotten(connection):
    connection.receive(binary(600_000) + bytes(1000))
    connection.transport.protocol.connection_lost(None)

    assert not connection.open
    assert not connection.replies


def test_a_length_that_is_only_claimed_takes_no_memory(connection):
    head = b"POST /v2/models/m/infer HTTP/1.1\r\nHost: x\r\nContent-Length: 2000000000\r\n"
    tracemalloc.start()
    try:
        connection.receive(head + b"Inference-Header-Content-Length: 10\r\n\r\n" + bytes(1000))
        connection.transport.protocol.get_buffer(65_536).release()
        assert tracemalloc.get_traced_memory()[0] < 500_000
    finally:
        tracemalloc.stop()


def test_a_body_beyond_the_limit_goes_to_aiohttp(connection):
    connection.receive(binary((1 << 20) + 1))
    assert connection.fallbacks[0].data == binary((1 << 20) + 1)


# A client that sends the same head again and again -----------------------------------------


def numbers(first, count=20_000):
    return np.arange(first, first + count, dtype=np.float32).tobytes()


def asked(connection):
    """Return the bodies of the requests to the models."""
    return [bytes(reply.request.inputs["x"].raw) for reply in connection.replies]


def landing(connection):
    """A connection whose transport reads directly into the next body."""
    for first in (0, 1):
        body = numbers(first)
        connection.receive(binary(len(body)) + body)
    assert isinstance(connection.transport.protocol, RequestReceiver)
    return connection


def test_the_transport_reads_into_the_bodies_of_a_client_that_repeats_itself(connection):
    landing(connection)
    for first in range(2, 6):
        connection.receive(binary(len(numbers(first))) + numbers(first))
        assert isinstance(connection.transport.protocol, RequestReceiver)

    assert asked(connection) == [numbers(first) for first in range(6)]
    (tensor,) = connection.replies[-1].request.inputs.values()
    assert tensor.array.ctypes.data % 64 == 0  # where a line of the cache begins


def behind_json(values):
    """A request whose tensor follows its description."""
    entry = {"name": "x", "datatype": "FP32", "shape": [len(values) // 4]}
    entry["parameters"] = {"binary_data_size": len(values)}
    text = json.dumps({"inputs": [entry]}).encode()
    sizes = (len(text) + len(values), len(text))
    return (
        b"POST /v2/models/m/infer HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n"
        b"Inference-Header-Content-Length: %d\r\n\r\n" % sizes
    ) + (text + values)


def test_the_same_description_before_other_tensors_is_not_read_again(connection):
    for first in range(8):
        connection.receive(behind_json(numbers(first)))

    assert asked(connection) == [numbers(first) for first in range(8)]
    shapes = [reply.request.inputs["x"].shape for reply in connection.replies]
    assert shapes[-1] is shapes[-2] == (20_000,)
    assert all(not reply.request.inputs["x"].array.flags.writeable for reply in connection.replies)


@given(st.lists(st.integers(0, 80_200), max_size=4))
def test_such_a_request_may_come_in_any_pieces(cuts):
    connection = landing(Connection())
    data = binary(len(numbers(2))) + numbers(2)
    begin = 0
    for end in (*sorted(cuts), len(data)):
        connection.receive(data[begin:end])
        begin = end

    assert asked(connection)[2:] == [numbers(2)]
    assert isinstance(connection.transport.protocol, RequestReceiver)


@pytest.mark.parametrize(
    "other",
    [request("other"), binary(8) + numbers(7, 2), binary(60_000) + numbers(7, 15_000)],
    ids=["JSON", "small", "almost as large"],
)
@pytest.mark.parametrize("cut", [1, 30, 10_000])
def test_the_next_request_uses_the_fast_path_again(connection, other, cut):
    landing(connection)
    for piece in (other[:cut], other[cut:]):
        if piece:
            connection.receive(piece)

    assert connection.transport.protocol is connection.lane
    assert len(connection.replies) == 3 and connection.transport.reading


def test_requests_that_only_aiohttp_supports_go_to_it_again(connection):
    landing(connection)
    for which in (0, 1):
        connection.answer(which)
    connection.receive(OTHER)

    assert [fallback.data for fallback in connection.fallbacks] == [OTHER]


@pytest.mark.parametrize("behind", [request("behind"), binary(80_000)[:30]], ids=["whole", "begun"])
def test_a_request_after_such_a_one_is_not_lost(connection, behind):
    landing(connection)
    connection.receive(binary(len(numbers(2))) + numbers(2) + behind)

    assert asked(connection)[2] == numbers(2)
    assert len(connection.replies) == 3 + (behind == request("behind"))
    assert connection.transport.protocol is connection.lane


def test_more_requests_than_may_wait_are_not_read(connection):
    landing(connection)
    for first in range(2, 70):
        connection.receive(binary(len(numbers(first))) + numbers(first))
    assert len(connection.replies) == 64 and not connection.transport.reading

    for which in range(len(connection.replies)):
        connection.answer(which)
    for turn in connection.turns:
        turn()

    assert connection.transport.reading
    assert asked(connection)[64:] == [numbers(first) for first in range(64, 70)]


def test_a_body_beyond_a_megabyte_takes_its_memory_as_it_comes():
    connection = Connection(most=1 << 24)
    body = numbers(0, 263_000)
    for _ in range(3):
        connection.receive(binary(len(body)) + body)

    assert connection.transport.protocol is connection.lane
    assert asked(connection) == [body] * 3


@pytest.mark.parametrize(("size", "in_body"), [(20, False), (1000, True)])
def test_a_client_that_does_not_go_on_is_seen(connection, size, in_body):
    landing(connection)
    for which in (0, 1):
        connection.answer(which)
    assert connection.lane.unfinished() is None

    connection.receive((binary(len(numbers(2))) + numbers(2))[:size])

    assert connection.lane.unfinished()[::2] == (in_body, size)


def test_a_connection_that_finishes_waits_for_the_body_that_has_begun(connection):
    landing(connection)
    for which in (0, 1):
        connection.answer(which)
    data = binary(len(numbers(2))) + numbers(2)
    connection.receive(data[:1000])
    connection.lane.finish()
    assert not connection.transport.closed

    connection.receive(data[1000:])
    connection.answer(2)

    assert connection.transport.closed


@pytest.mark.parametrize("size", [0, 20])
def test_a_connection_that_finishes_does_not_wait_for_a_request_that_has_not(connection, size):
    landing(connection)
    connection.receive((binary(len(numbers(2))))[:size])
    connection.lane.finish()
    connection.receive(binary(len(numbers(2)))[size:] + numbers(2))
    for which in (0, 1):
        connection.answer(which)
    for turn in connection.turns:
        turn()

    assert len(connection.replies) == 2 and connection.transport.closed


def test_a_connection_that_is_lost_within_such_a_request_is_forgotten(connection):
    landing(connection)
    connection.receive((binary(len(numbers(2))) + numbers(2))[:1000])
    connection.transport.protocol.connection_lost(None)

    assert not connection.open
    assert [reply.request.cancelled for reply in connection.replies] == [True, True]
