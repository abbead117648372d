"""generate_stream on the wire: a real HttpFrontend over a server whose responses a test gives."""

import asyncio
import json

import numpy as np
import pytest
from integration.http.scripted_server import PATIENCE_S, until

from core.errors import invalid
from core.response import InferenceResponse
from core.tensor import Tensor
from frontends.http.codec import generate as codec
from frontends.http.services import generate as service


class Client:
    """Writes requests and reads chunks."""

    def __init__(self, server, reader, writer):
        self.server = server
        self.reader = reader
        self.writer = writer

    async def open(self, version="1.1", headers=""):
        """Send a request; the reply that the test has to fill."""
        body = '{"x":"hi"}'
        self.writer.write(
            f"POST /v2/models/m/generate_stream HTTP/{version}\r\nHost: x\r\n{headers}"
            f"Content-Length: {len(body)}\r\n\r\n{body}".encode()
        )
        return await self.server.reply()

    async def head(self):
        """Status and headers of the answer."""
        text = await asyncio.wait_for(self.reader.readuntil(b"\r\n\r\n"), PATIENCE_S)
        first, *lines = text.decode().rstrip().split("\r\n")
        return int(first.split()[1]), dict(line.lower().split(": ", 1) for line in lines)

    async def chunk(self):
        """The next chunk, b"" for the last."""
        size = int(await asyncio.wait_for(self.reader.readline(), PATIENCE_S), 16)
        data = await asyncio.wait_for(self.reader.readexactly(size + 2), PATIENCE_S)
        return data[:-2]

    async def event(self):
        """Return the next event, which may arrive in several chunks."""
        data = await self.chunk()
        while not data.endswith(b"\n\n"):
            data += await self.chunk()
        return data


def answer(number, text=b""):
    outputs = [
        Tensor.of("number", np.array([number], np.int32)),
        Tensor.of("text", np.array([text], object)),
    ]
    return InferenceResponse("m", 1, outputs)


def number(chunk):
    assert chunk.startswith(b"data: ") and chunk.endswith(b"\n\n")
    return json.loads(chunk[6:])["number"]


@pytest.fixture
async def server(serve):
    return await serve()


@pytest.fixture
async def frontend(server):
    return server.frontend


@pytest.fixture
async def client(server, frontend):
    reader, writer = await asyncio.open_connection("127.0.0.1", frontend.port)
    yield Client(server, reader, writer)
    writer.close()


async def test_an_event_is_sent_before_the_next_is_there(client):
    reply = await client.open()

    for each in range(3):
        reply.send(answer(each), final=False)
        if each == 0:
            status, headers = await client.head()
        assert number(await client.chunk()) == each
    reply.send(None)

    assert await client.chunk() == b""
    assert status == 200
    assert headers["content-type"] == "text/event-stream; charset=utf-8"
    assert headers["transfer-encoding"] == "chunked"


async def test_the_connection_serves_on_after_a_stream(client):
    for each in range(3):
        reply = await client.open()
        reply.send(answer(each))
        await client.head()
        assert number(await client.chunk()) == each
        assert await client.chunk() == b""


async def test_an_old_client_gets_the_events_until_the_connection_ends(client):
    reply = await client.open(version="1.0")
    reply.send(answer(0), final=False)
    reply.send(answer(1))

    _, headers = await client.head()
    rest = await asyncio.wait_for(client.reader.read(), PATIENCE_S)

    assert "transfer-encoding" not in headers
    assert [number(event + b"\n\n") for event in rest.split(b"\n\n")[:-1]] == [0, 1]


async def test_a_first_error_has_its_status(client):
    reply = await client.open()
    reply.fail(invalid("not this one"))

    status, _ = await client.head()

    assert status == 400
    assert await client.chunk() == b'data: {"error":"not this one"}\n\n'
    assert await client.chunk() == b""


async def test_the_last_event_is_the_deadline_error(client):
    reply = await client.open(headers="grpc-timeout: 300m\r\n")
    reply.send(answer(0), final=False)

    status, _ = await client.head()
    events = [await client.chunk(), await client.chunk()]

    assert status == 200
    assert number(events[0]) == 0
    assert events[1] == b'data: {"error":"Deadline Exceeded"}\n\n'
    assert await client.chunk() == b""
    assert reply.request.cancelled


async def test_a_client_that_goes_cancels_its_request(client):
    reply = await client.open()
    reply.send(answer(0), final=False)
    await client.head()
    assert number(await client.chunk()) == 0

    client.writer.transport.abort()

    await until(lambda: reply.request.cancelled)


async def test_a_client_that_disconnects_without_reading_cancels_its_request(client):
    reply = await client.open()
    for each in range(100):
        reply.send(answer(each, b"x" * 2**20), final=False)
    await client.head()

    client.writer.transport.abort()

    await until(lambda: reply.request.cancelled)


async def test_a_stream_that_fails_in_the_server_is_visibly_cut(client, monkeypatch, caplog):
    reply = await client.open()
    reply.send(answer(0), final=False)
    await client.head()
    assert number(await client.chunk()) == 0

    monkeypatch.setattr(service, "_written", lambda item: 1 / 0)
    reply.send(answer(1), final=False)

    assert await asyncio.wait_for(client.reader.read(), PATIENCE_S) == b""
    assert reply.request.cancelled
    assert "an answer is cut" in caplog.text


async def test_events_wait_for_a_client_that_does_not_read(client, monkeypatch):
    rendered = []
    write = codec.write
    monkeypatch.setattr(codec, "write", lambda *each: rendered.append(each) or write(*each))
    reply = await client.open()
    client.reader._transport.pause_reading()
    for each in range(200):
        reply.send(answer(each, b"x" * 2**20), final=each == 199)
    before = -1
    while len(rendered) != before:
        before = len(rendered)
        await asyncio.sleep(0.3)
    stuck_at = len(rendered)
    client.reader._transport.resume_reading()
    await client.head()
    found = [number(await client.event()) for _ in range(200)]

    assert stuck_at < 100
    assert found == list(range(200))
    assert await client.chunk() == b""


async def test_the_end_of_the_server_waits_for_a_stream(frontend, client):
    reply = await client.open()
    reply.send(answer(0), final=False)
    await client.head()
    stopping = asyncio.ensure_future(frontend.stop(PATIENCE_S))
    await asyncio.sleep(0)

    reply.send(answer(1))

    assert number(await client.chunk()) == 0
    assert number(await client.chunk()) == 1
    assert await client.chunk() == b""
    await stopping


LATE = "the server is shutting down, and the request was not done within --exit-timeout-secs=0.05"


async def test_a_stream_that_exceeds_the_stop_time_ends_with_an_error(frontend, client):
    reply = await client.open()
    reply.send(answer(0), final=False)
    await client.head()

    await frontend.stop(0.05)

    assert reply.request.cancelled
    assert number(await client.chunk()) == 0
    assert json.loads((await client.chunk())[6:]) == {"error": LATE}
    assert await client.chunk() == b""


async def test_a_stream_that_has_no_answer_when_the_server_stops_waiting_gets_a_status(
    frontend, client
):
    reply = await client.open()

    await frontend.stop(0.05)

    status, _ = await client.head()
    assert status == 503
    assert json.loads((await client.chunk())[6:]) == {"error": LATE}
    assert reply.request.cancelled


async def test_a_stream_whose_client_does_not_read_also_ends(frontend, client):
    client.reader._transport.pause_reading()
    reply = await client.open()
    for each in range(50):
        reply.send(answer(each, b"x" * 1_000_000), final=False)

    await asyncio.wait_for(frontend.stop(0.05), PATIENCE_S)

    await until(lambda: reply.request.cancelled)
