"""Clients that are slow, in a hurry, or hostile; and streams in both directions."""

import asyncio
import threading

import pytest
from routing.requests import PATIENCE_S, ask, inputs, until
from routing.running import good, said

GET = b"GET /v2/models/m HTTP/1.1\r\nHost: x\r\n\r\n"


@pytest.fixture
def before(scripted, route):
    """Return a function that makes a server with a script and a router before it."""

    def make(respond, limits=None, **options):
        server = scripted(respond)
        return server, route([server.name], limits, **options)

    return make


def test_requests_on_one_connection_are_answered_in_their_order(before, raw):
    async def echo(reader, writer, line, body):
        await asyncio.sleep(0.02 if body == b"0" else 0)
        writer.write(said(body))

    _, router = before(echo)
    client = raw(router.port)
    client.send(
        b"".join(
            b"POST /v2/models/m/infer HTTP/1.1\r\nHost: x\r\nContent-Length: 1\r\n\r\n%d" % number
            for number in range(9)
        )
    )

    assert [client.receive()[2] for _ in range(9)] == [b"%d" % number for number in range(9)]


def test_many_requests_that_the_router_answers_itself_may_come_at_once(before, raw):
    _, router = before(good)
    client = raw(router.port)
    client.send(b"GET /v2/health/live HTTP/1.1\r\nHost: x\r\n\r\n" * 3000)

    assert {client.receive()[0] for _ in range(3000)} == {200}


def test_a_request_may_come_byte_by_byte(before, raw):
    _, router = before(good)
    client = raw(router.port)
    for byte in b"POST /v2/models/m/infer HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nabc":
        client.send(bytes([byte]))

    assert client.receive()[::2] == (200, b"good:abc")


def test_a_client_is_asked_for_the_body_it_holds_back(before, raw):
    _, router = before(good)
    client = raw(router.port)
    client.send(
        b"POST /v2/models/m/infer HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n"
        b"Expect: 100-continue\r\n\r\n"
    )
    assert client.receive()[0] == 100
    client.send(b"abc")

    assert client.receive()[::2] == (200, b"good:abc")


def test_head_has_no_body(before, raw):
    async def head(reader, writer, line, body):
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n")

    _, router = before(head)
    client = raw(router.port)
    for _ in range(3):
        client.send(b"HEAD /v2/models/m HTTP/1.1\r\nHost: x\r\n\r\n")
        assert client.file.readline() == b"HTTP/1.1 200 OK\r\n"
        assert client.file.readline() == b"Content-Length: 100\r\n"
        assert client.file.readline() == b"\r\n"


def test_a_large_body_passes_piece_by_piece(before):
    received = []

    async def count(reader, writer, line, body):
        received.append(len(body))
        writer.write(said(b"good:"))

    _, router = before(count, {"kept_body_bytes": 1000})

    assert ask(router.port, "/v2/models/m/infer", b"x" * 3_000_000).status == 200
    assert received == [3_000_000]
    assert router.metric("core_router_kept_bytes") == 0


def test_a_large_body_in_chunks_passes_piece_by_piece(before, raw):
    pieces = []

    async def count(reader, writer, line, body):
        pieces.append(await reader.readuntil(b"0\r\n\r\n"))
        writer.write(said(b"good:"))

    _, router = before(count, {"kept_body_bytes": 1000})
    client = raw(router.port)
    client.send(b"POST /v2/models/m/infer HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\n")
    for _ in range(5):
        client.send(b"3e8\r\n" + b"x" * 1000 + b"\r\n")
    client.send(b"0\r\n\r\n")

    assert client.receive()[0] == 200
    assert pieces[0].count(b"3e8\r\n") == 5


def test_a_response_reaches_a_slow_client_without_memory_for_all_of_it(before, raw):
    sent = []

    async def much(reader, writer, line, body):
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n")
        for _ in range(100):
            writer.write(b"x" * 1_000_000)
            await writer.drain()
            sent.append(1)

    _, router = before(much)
    client = raw(router.port)
    client.send(GET)
    until(lambda: sent)
    count = -1
    while count != len(sent):
        count = len(sent)
        threading.Event().wait(0.1)

    assert count < 50
    assert len(client.receive()[2]) == 100_000_000


def test_a_slow_server_slows_the_client(before, raw):
    gate = asyncio.Event()

    async def late(reader, writer, line, body):
        writer.write(said(b""))

    _server, router = before(late, {"kept_body_bytes": 1000})
    # The server reads a body as a whole, but not while its buffer is full: its limit is 64 KiB.
    server_loop = router._thread.loop
    client = raw(router.port)
    client.socket.settimeout(0.3)
    original = asyncio.StreamReader.readexactly

    async def readexactly(self, size):
        await gate.wait()
        return await original(self, size)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(asyncio.StreamReader, "readexactly", readexactly)
        size = 100_000_000
        client.send(b"POST /v2/models/m/infer HTTP/1.1\r\nContent-Length: %d\r\n\r\n" % size)
        sent = 0
        with pytest.raises(TimeoutError):
            while sent < size:
                sent += client.socket.send(b"x" * 1_000_000)
        assert sent < size // 2
        server_loop.call_soon_threadsafe(gate.set)
        client.socket.settimeout(PATIENCE_S)
        client.send(b"x" * (size - sent))
        assert client.receive()[0] == 200


def test_events_reach_the_client_one_by_one(before, raw):
    more = asyncio.Event()

    async def events(reader, writer, line, body):
        writer.write(b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n")
        for word in (b"first", b"other"):
            writer.write(b"5\r\n" + word + b"\r\n")
            await more.wait()
        writer.write(b"0\r\n\r\n")

    _server, router = before(events)
    client = raw(router.port)
    client.send(GET)
    assert client.file.readline() == b"HTTP/1.1 200 OK\r\n"
    assert client.file.read(len(b"Transfer-Encoding: chunked\r\n\r\n5\r\nfirst\r\n"))
    router._thread.loop.call_soon_threadsafe(more.set)
    assert client.file.read(15) == b"5\r\nother\r\n0\r\n\r\n"


def test_a_client_that_leaves_ends_its_request(before, raw):
    gone = threading.Event()

    async def wait(reader, writer, line, body):
        if not await reader.read(1):
            gone.set()

    _, router = before(wait)
    client = raw(router.port)
    client.send(GET)
    until(lambda: router.metric("core_router_in_flight") == 1)
    client.close()

    assert gone.wait(PATIENCE_S)
    until(lambda: router.metric("core_router_in_flight") == 0)
    assert router.metric("core_router_lost") == 0


def test_another_protocol_passes_in_both_directions(before, raw):
    async def upper(reader, writer, line, body):
        writer.write(
            b"HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: up\r\n\r\n"
        )
        while data := await reader.read(100):
            writer.write(data.upper())

    _, router = before(upper)
    client = raw(router.port)
    client.send(b"GET /v2/x HTTP/1.1\r\nConnection: Upgrade\r\nUpgrade: up\r\n\r\n")
    assert client.receive()[0] == 101
    for word in (b"abc", b"def"):
        client.send(word)
        assert client.file.read(3) == word.upper()
    client.close()
    until(lambda: router.metric("core_router_in_flight") == 0)


def test_an_answer_before_the_end_of_the_body_ends_the_connection(before, raw):
    async def read_no_more(reader, writer, line, body):
        raise AssertionError  # the server reads whole bodies first

    server, router = before(read_no_more, {"kept_body_bytes": 10})
    server.early = said(b"too large", 413)
    client = raw(router.port)
    client.send(b"POST /v2/models/m/infer HTTP/1.1\r\nContent-Length: 100000\r\n\r\n" + b"x" * 500)

    status, fields, body = client.receive()
    assert (status, fields["connection"], body) == (413, "close", b"too large")
    assert client.is_at_end()


@pytest.mark.parametrize(
    ("data", "status"),
    [
        (b"\x16\x03\x01\x02\x00\x01\x00", 400),
        (b"GET / HTTP/3\r\n\r\n", 400),
        (b"POST /v2 HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", 400),
        (b"POST /v2 HTTP/1.1\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n", 400),
        (b"POST /v2 HTTP/1.1\r\nTransfer-Encoding: gzip\r\n\r\n", 501),
        (b"GET /" + b"x" * 17_000, 431),
        (b"POST /v2 HTTP/1.1\r\nContent-Length: 5000\r\n\r\n" + b"x" * 1000, 413),
    ],
)
def test_what_is_not_a_request_ends_the_connection(before, raw, data, status):
    server, router = before(good, {"body_bytes": 4000})
    client = raw(router.port)
    client.send(data)

    found, fields, _ = client.receive()
    assert (found, fields["connection"]) == (status, "close")
    assert client.is_at_end()
    assert server.requests == []


def test_a_request_that_does_not_go_on_is_ended(before, raw):
    _, router = before(good, {"client_s": 0.1, "idle_s": 0.1})
    half, idle = raw(router.port), raw(router.port)
    half.send(b"POST /v2 HTTP/1.1\r\nContent-Length: 5\r\n\r\n")

    assert half.receive()[0] == 408
    assert idle.is_at_end()


def test_too_many_clients_are_refused(before, raw):
    _, router = before(good, {"connections": 2})
    first, second, third = (raw(router.port) for _ in range(3))

    assert third.receive()[0] == 503
    first.send(GET)
    assert first.receive()[0] == 200
    second.close()
    third.close()
    until(lambda: len(router.router.clients) < 2)
    assert ask(router.port, "/v2/models/m").status == 200


def test_the_last_response_of_an_ending_router_says_so(before, raw):
    _, router = before(good)
    client = raw(router.port)
    client.send(GET)
    assert "connection" not in client.receive()[1]
    drained = router.drain()
    until(lambda: router.router.is_draining)
    client.send(GET)

    assert client.receive()[1]["connection"] == "close"
    drained.result(PATIENCE_S)


def test_http_1_0_gets_its_response(before, raw):
    _, router = before(good)
    client = raw(router.port)
    client.send(b"GET /v2/models/m HTTP/1.0\r\n\r\n")

    assert client.receive()[::2] == (200, b"good:")
    assert client.is_at_end()


def test_the_model_of_openais_routes_is_in_the_body(scripted, route):
    first, second = scripted(good), scripted(good)
    first.index = [{"name": "chat", "version": "1", "state": "READY"}]
    router = route([first.name, second.name])

    for _ in range(8):
        assert ask(router.port, "/v1/chat/completions", {"model": "chat"}).status == 200
        assert ask(router.port, "/v1/chat/completions", {"model": "m"}).status == 200
    assert (len(first.requests), len(second.requests)) == (8, 8)
    assert ask(router.port, "/v2/models/m/infer", inputs(1.0)).status == 200
