"""Many requests on one connection, and a client that does not read their responses."""

import asyncio
import threading

import pytest
from core_router.http.client import ClientConnection
from core_router.options import RouterOptions
from core_router.router import Router
from core_router.servers.addresses import read_servers
from core_router.servers.server import Address, Server, State
from routing.requests import until
from routing.running import good, said

LIVE = b"GET /v2/health/live HTTP/1.1\r\nHost: x\r\n\r\n"
GET = b"GET /v2/models/m HTTP/1.1\r\nHost: x\r\n\r\n"
MOST_AT_ONCE = 100  # of http/client.py


class Transport:
    """A transport that keeps what is written; `most` bytes until its client has to read."""

    def __init__(self, most):
        self.most = most
        self.written = bytearray()
        self.is_reading = True
        self.is_closed = False
        self.protocol = None

    def write(self, data):
        was_full = len(self.written) > self.most
        self.written += data
        if not was_full and len(self.written) > self.most:
            self.protocol.pause_writing()

    def read(self):
        """Take what was written, as the client."""
        data, self.written = bytes(self.written), bytearray()
        if len(data) > self.most:
            self.protocol.resume_writing()
        return data

    def pause_reading(self):
        assert self.is_reading
        self.is_reading = False

    def resume_reading(self):
        assert not self.is_reading
        self.is_reading = True

    def can_write_eof(self):
        return False

    def close(self):
        self.is_closed = True


def closed_router():
    return Router(RouterOptions(read_servers("127.0.0.1:1"), grpc_port=None))


def connected(most=1 << 30, router=None):
    """Return a connection to a router that is not open, and its transport."""
    connection, transport = ClientConnection(router or closed_router()), Transport(most)
    transport.protocol = connection
    connection.connection_made(transport)
    return connection, transport


def answers(data):
    return data.count(b"HTTP/1.1 200 OK\r\n")


async def test_requests_that_come_at_once_take_turns_with_other_connections():
    connection, transport = connected()
    connection.data_received(LIVE * 1000 + LIVE[:20])

    counts = [answers(transport.written)]
    while counts[-1] < 1000:
        await asyncio.sleep(0)
        counts.append(answers(transport.written))
        assert len(counts) < 100
    assert max(after - before for before, after in zip([0, *counts], counts, strict=False)) == (
        MOST_AT_ONCE
    )
    await asyncio.sleep(0)
    connection.data_received(LIVE[20:])
    assert answers(transport.written) == 1001


async def test_requests_that_wait_for_their_turn_have_a_bound():
    connection, transport = connected()
    many = LIVE * 5000  # about 200 KB
    connection.data_received(many)
    assert transport.is_reading
    connection.data_received(many)

    assert not transport.is_reading
    assert answers(transport.written) == MOST_AT_ONCE
    while answers(transport.written) < 10_000:
        await asyncio.sleep(0)
    assert transport.is_reading


async def test_a_client_that_does_not_read_gets_no_further_answer():
    connection, transport = connected(most=1000)
    connection.data_received(LIVE * 5000)
    connection.data_received(LIVE * 5000)
    for _ in range(5):
        await asyncio.sleep(0)

    assert len(transport.written) < 2000
    assert not transport.is_reading
    connection.expire(1e9, 75.0, 30.0)
    assert not transport.is_closed
    count = 0
    while count < 10_000:
        found = answers(transport.read())
        assert 0 < found < 100
        count += found
    assert transport.is_reading
    connection.expire(1e9, 75.0, 30.0)
    assert transport.is_closed


async def test_an_incomplete_head_after_requests_must_go_on():
    connection, transport = connected()
    connection.data_received(LIVE * 3 + LIVE[:20])
    connection.expire(1e9, 75.0, 30.0)

    assert b" 408 " in transport.written


class ServerConnection:
    """What a request needs of a connection to a server."""

    def __init__(self):
        self.is_reading = True

    def send(self, request, data):
        self.request = request

    def pause_reading(self):
        self.is_reading = False

    def resume_reading(self):
        self.is_reading = True


def one_server():
    """Return a router, its server, and the requests that wait for a connection to it."""
    router, server, waiting = closed_router(), Server(Address("h", 1)), []
    server.state = State.READY
    router.table.servers[server.name] = server
    router.connect = lambda request, server: waiting.append(request)
    return router, server, waiting


@pytest.mark.parametrize("is_idle", [False, True])
async def test_a_response_waits_for_a_client_that_has_not_read_100_continue(is_idle):
    router, server, waiting = one_server()
    connection, transport = connected(10, router)
    to_server = ServerConnection()
    if is_idle:
        server.idle.append(to_server)
    connection.data_received(
        b"POST /v2/models/m/infer HTTP/1.1\r\nContent-Length: 3\r\nExpect: 100-continue\r\n\r\n"
    )
    connection.data_received(b"abc")
    for request in waiting:
        request.connected(to_server)
    assert to_server.request is connection.request and not to_server.is_reading

    assert transport.read() == b"HTTP/1.1 100 Continue\r\n\r\n"

    assert to_server.is_reading


async def test_a_connection_is_idle_from_the_end_of_its_last_response_on():
    router, _, _ = one_server()
    connection, transport = connected(router=router)
    connection.data_received(GET)
    connection.expire(1000.0, 75.0, 30.0)
    connection.complete(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n", False)

    connection.expire(1070.0, 75.0, 30.0)
    assert not transport.is_closed
    connection.expire(1080.0, 75.0, 30.0)
    assert transport.is_closed


@pytest.mark.parametrize("size", [33, 1_000_000])
def test_responses_that_a_client_does_not_read_are_not_kept(scripted, route, raw, size):
    async def much(reader, writer, line, body):
        writer.write(said(b"%05d" % len(server.requests) + b"x" * size))
        await writer.drain()

    server = scripted(much)
    router = route([server.name])
    client = raw(router.port)
    total = 60 if size > 33 else 2000
    client.send(GET * total)
    until(lambda: server.requests)
    if size > 33:  # smaller responses all have room in the buffers of the system
        count = -1
        while count != len(server.requests):
            count = len(server.requests)
            threading.Event().wait(0.1)
        assert count < 40

    for number in range(1, total + 1):
        status, _, body = client.receive()
        assert (status, body[:5]) == (200, b"%05d" % number)


def test_requests_behind_a_long_body_are_answered(scripted, route, raw):
    router = route([scripted(good).name])
    client = raw(router.port)
    head = b"POST /v2/models/m/infer HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n"
    client.send((head % 70_000 + b"a" * 70_000 + head % 3 + b"abc" + LIVE) * 3)

    for _ in range(3):
        assert len(client.receive()[2]) == 70_005
        assert client.receive()[2] == b"good:abc"
        assert client.receive()[2] == b""
