"""A connection to the HTTP port reads responses as HTTP/1.1 frames them, however their bytes arrive."""

import asyncio
from contextlib import asynccontextmanager

import pytest
from core_ray.http_connection import HttpConnection
from core_ray.http_connections import HttpConnections

OK = b"HTTP/1.1 200 OK\r\n"
CHUNKS = OK + b"Transfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n4;x=1\r\n\r\nde\r\n0\r\nT: 1\r\n\r\n"


@asynccontextmanager
async def listening(answer):
    """A port whose connections are given to `answer(reader, writer)`; yields its URL."""

    async def run(reader, writer):
        try:
            await answer(reader, writer)
        finally:
            writer.close()

    listener = await asyncio.start_server(run, "127.0.0.1", 0)
    try:
        yield f"http://127.0.0.1:{listener.sockets[0].getsockname()[1]}"
    finally:
        listener.close()


def sends(*parts, stays=False):
    """Return what answers a request with these bytes, each part by itself, and closes unless it `stays`."""

    async def answer(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        for part in parts:
            writer.write(part)
            await writer.drain()
            await asyncio.sleep(0.001)
        if stays:
            await reader.read()

    return answer


async def asked(connection, method="GET"):
    """Send a request; return status, fields and body of its response."""
    connection.write(f"{method} / HTTP/1.1\r\nhost: x\r\n\r\n".encode())
    head = await connection.head(method)
    return head.status, dict(head.fields), await body_of(connection)


def answered(*parts, method="GET", stays=False):
    """Return the response that a connection reads, and whether it stays open."""

    async def run():
        async with listening(sends(*parts, stays=stays)) as url:
            connection = await HttpConnections(url).take()
            try:
                found = await asyncio.wait_for(asked(connection, method), 20)
                return *found, connection.is_open
            finally:
                connection.close()

    return asyncio.run(run())


class Transport(asyncio.Transport):
    """The transport of a connection whose bytes a test gives it."""

    reads = True

    def is_closing(self):
        return False

    def pause_reading(self):
        self.reads = False

    def resume_reading(self):
        self.reads = True


def connected():
    """Return a connection with such a transport."""
    made = HttpConnection()
    made.connection_made(Transport())
    return made


async def body_of(connection):
    body, is_last = b"", False
    while not is_last:
        piece, is_last = await connection.piece()
        body += piece
    return body


def test_a_connection_on_the_loop_of_uvloop_is_read():
    uvloop = pytest.importorskip("uvloop")  # Ray runs replicas on it, if it is installed

    async def run():
        async with listening(sends(OK + b"Content-Length: 2\r\n\r\nab", stays=True)) as url:
            connection = await HttpConnections(url).take()
            found = await asyncio.wait_for(asked(connection), 20)
            connection.close()
            return found[2]

    loop = uvloop.new_event_loop()
    try:
        assert loop.run_until_complete(run()) == b"ab"
    finally:
        loop.close()


def test_a_body_of_known_length_ends_with_it():
    found = answered(OK + b"Content-Length: 5\r\nX-Y:  a: b \r\n\r\nab", b"cde", stays=True)

    assert found == (200, {b"content-length": b"5", b"x-y": b"a: b"}, b"abcde", True)


@pytest.mark.parametrize("at", range(1, len(CHUNKS)))
def test_chunks_are_joined_wherever_the_bytes_are_cut(at):
    async def run():
        connection = connected()
        reading = asyncio.create_task(asked_of_bytes(connection))
        for part in (CHUNKS[:at], CHUNKS[at:]):
            connection.data_received(part)
            await asyncio.sleep(0)
        return await asyncio.wait_for(reading, 20), connection.is_open

    async def asked_of_bytes(connection):
        await connection.head("GET")
        return await body_of(connection)

    assert asyncio.run(run()) == (b"abc\r\nde", True)


def test_a_body_without_a_length_ends_with_its_connection():
    assert answered(OK + b"\r\nab", b"c")[2:] == (b"abc", False)


@pytest.mark.parametrize("reset", [True, False])
def test_a_body_without_a_length_that_is_cut_is_an_error(reset):
    async def run():
        connection = connected()
        connection.data_received(OK + b"\r\nab")
        await connection.head("GET")
        if reset:
            connection.connection_lost(ConnectionResetError())
        else:  # this side closes, as after an error of the request
            connection._transport.abort = lambda: connection.connection_lost(None)
            connection.close()
        await asyncio.wait_for(body_of(connection), 20)

    with pytest.raises(ConnectionError, match="before its response was complete") as raised:
        asyncio.run(run())
    assert isinstance(raised.value.__cause__, ConnectionResetError) is reset


@pytest.mark.parametrize(
    "method, head",
    [
        ("HEAD", OK + b"Content-Length: 5\r\n\r\n"),
        ("GET", b"HTTP/1.1 204 No Content\r\n\r\n"),
        ("GET", b"HTTP/1.1 304 Not Modified\r\nContent-Length: 5\r\n\r\n"),
    ],
)
def test_responses_without_a_body_end_with_their_head(method, head):
    assert answered(head, method=method, stays=True)[2:] == (b"", True)


def test_an_interim_response_is_skipped():
    found = answered(b"HTTP/1.1 100 Continue\r\n\r\n" + OK + b"Content-Length: 0\r\n\r\n")

    assert found[0] == 200


@pytest.mark.parametrize(
    "answer, reason",
    [
        (b"SSH-2.0-x\r\n\r\n", "expected a status line"),
        (b"HTTP/1.1 what\r\n\r\n", "expected a number"),
        (OK + b"Content-Length: -1\r\n\r\n", "expected a number"),
        (OK + b"Transfer-Encoding: chunked\r\n\r\nxyz\r\n", "expected a number"),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n-3\r\n", "expected a number"),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n3\r\nabcd", "expected the end of a line"),
        (CHUNKS.replace(b"abc\r\n", b"abc\r0"), "expected the end of a line"),
        (OK + b"Content-Length: 5\r\n\r\nab", "before its response was complete"),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n3\r\nab", "before its response was complete"),
        (b"HTTP/1.1 200", "before its response was complete"),
        (b"", "before its response was complete"),
    ],
)
def test_a_response_that_is_cut_or_malformed_is_an_error(answer, reason):
    with pytest.raises(ConnectionError, match=reason):
        answered(answer)


@pytest.mark.parametrize(
    "begin, what",
    [
        (OK + b"X: ", "a head"),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n3;", "the size of a chunk"),
        (OK + b"Transfer-Encoding: chunked\r\n\r\n0\r\nT: ", "trailers"),
    ],
)
def test_what_has_no_end_is_an_error(begin, what):
    with pytest.raises(ConnectionError, match=rf"{what}.* of more than 256 KiB"):
        answered(begin, *[b"a" * 40_000] * 20, stays=True)


def test_a_large_interim_response_does_not_stop_the_reading():
    long = b"X: " + b"a" * 200_000

    async def run():
        connection = connected()
        transport = connection._transport
        reading = asyncio.create_task(connection.head("GET"))
        connection.data_received(b"HTTP/1.1 100 Continue\r\n" + long + b"\r\n\r\n" + OK + long)
        assert not transport.reads
        await asyncio.sleep(0)
        assert transport.reads
        connection.data_received(b"\r\n\r\n")
        return await asyncio.wait_for(reading, 20)

    assert asyncio.run(run()).status == 200


def test_a_connection_whose_server_has_sent_its_last_byte_is_not_used():
    async def run():
        connection = connected()
        assert connection.is_open
        connection.eof_received()
        return connection.is_open

    assert not asyncio.run(run())


def test_a_connection_is_used_again_unless_its_server_closes_it():
    opened = []

    async def answer(reader, writer):
        opened.append(writer)
        while head := await reader.readline():
            await reader.readuntil(b"\r\n\r\n")
            more = b"Connection: close\r\n" if head.startswith(b"POST") else b""
            writer.write(OK + more + b"Content-Length: 0\r\n\r\n")

    async def run():
        async with listening(answer) as url:
            connections = HttpConnections(url)
            numbers = []
            for method in ("GET", "POST", "GET"):
                connection = await connections.take()
                await asked(connection, method)
                numbers.append(len(opened))
                connections.put_back(connection)
            connections.close()
            return numbers

    assert asyncio.run(run()) == [1, 1, 2]


def test_unused_connections_are_closed_after_a_while(monkeypatch):
    monkeypatch.setattr("core_ray.http_connections._IDLE_S", 0.05)

    async def run():
        async with listening(sends(OK + b"Content-Length: 0\r\n\r\n", stays=True)) as url:
            connections = HttpConnections(url)
            connection = await connections.take()
            await asked(connection)
            connections.put_back(connection)
            assert connection.is_open
            while connection.is_open:
                await asyncio.sleep(0.01)

    asyncio.run(asyncio.wait_for(run(), 20))


def test_a_connection_whose_server_has_gone_is_not_used():
    async def run():
        async with listening(sends(OK + b"Content-Length: 0\r\n\r\n")) as url:
            connections = HttpConnections(url)
            first = await connections.take()
            await asked(first)
            connections.put_back(first)
            while first.is_open:
                await asyncio.sleep(0.01)
            second = await connections.take()
            assert second is not first and second.is_open
            second.close()

    asyncio.run(asyncio.wait_for(run(), 20))


def test_a_port_at_which_nothing_listens_is_an_error():
    async def run():
        async with listening(sends(b"")) as url:
            pass
        await HttpConnections(url).take()

    with pytest.raises(OSError):
        asyncio.run(run())


def test_a_response_that_is_not_read_is_not_stored():
    size, sent = 64 * 1024 * 1024, []

    async def answer(reader, writer):
        await reader.readuntil(b"\r\n\r\n")
        writer.write(OK + b"Content-Length: %d\r\n\r\n" % size)
        piece = bytes(1024 * 1024)
        while sum(sent) < size:
            writer.write(piece)
            await writer.drain()
            sent.append(len(piece))

    async def run():
        async with listening(answer) as url:
            connection = await HttpConnections(url).take()
            connection.write(b"GET / HTTP/1.1\r\nhost: x\r\n\r\n")
            await connection.head("GET")
            before = -1
            while before != sum(sent):
                before = sum(sent)
                await asyncio.sleep(0.2)
            assert before < size // 2
            got, is_last = 0, False
            while not is_last:
                piece, is_last = await connection.piece()
                got += len(piece)
            connection.close()
            return got

    assert asyncio.run(asyncio.wait_for(run(), 60)) == size
