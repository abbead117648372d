"""Messages of a WebSocket count as memory, and one that comes too slowly ends the connection."""

import asyncio
import json
import struct

import aiohttp
import pytest
from integration.http.scripted_server import PATIENCE_S, until

from frontends.http import websocket
from frontends.http.incoming_messages import IncomingMessages

from .conftest import received


class RawClient:
    """Sends any part of a frame."""

    HEAD = (
        "GET /v2/models/m/generate_stream HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\n"
        "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
        "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
    )

    @classmethod
    async def of(cls, server, behind=b""):
        found = cls()
        address = "127.0.0.1", server.frontend.port
        found.reader, found.writer = await asyncio.open_connection(*address)
        found.send(cls.HEAD.encode() + behind)
        head = await asyncio.wait_for(found.reader.readuntil(b"\r\n\r\n"), PATIENCE_S)
        assert head.startswith(b"HTTP/1.1 101 ")
        return found

    def send(self, data):
        self.writer.write(data)

    async def rest(self):
        """All that the server sends until it closes."""
        return await asyncio.wait_for(self.reader.read(), PATIENCE_S)

    def close(self):
        self.writer.close()


@pytest.fixture
async def raw():
    opened = []

    async def connect(server, behind=b""):
        opened.append(await RawClient.of(server, behind))
        return opened[-1]

    yield connect
    for each in opened:
        each.close()


LARGE = 1_000_000  # bytes, too many for no charge
HEAD = 14  # bytes before the content of a large frame


def frame(content, first=0x81):
    """A frame of a client, masked with zeros. first: of a text that is complete."""
    size = len(content)
    head = bytes([first, 0x80 | size]) if size < 126 else struct.pack(">BBQ", first, 0xFF, size)
    return head + bytes(4) + content


def large_message():
    return json.dumps({"x": "y" * LARGE, "id": "a"}).encode()


@pytest.mark.parametrize("parts", [1, 3])
async def test_a_message_counts_as_memory_from_its_first_bytes_to_its_last_answer(
    serve, raw, parts
):
    server = await serve(http_max_input_size=4 * LARGE)
    client, body = await raw(server), large_message()
    step = -(-len(body) // parts)
    pieces = [body[at : at + step] for at in range(0, len(body), step)]
    # Text, then its continuations; the last one is final.
    frames = [
        frame(piece, 0x80 * (number == parts) | (number == 1))
        for number, piece in enumerate(pieces, 1)
    ]
    sent = frame(b"here?", 0x89).join(frames)  # with pings in between

    client.send(sent[: LARGE // 2])
    await until(lambda: server.account.held > LARGE // 2 - 100)
    client.send(sent[LARGE // 2 :])
    reply = await server.reply()
    assert server.account.held == len(body)
    reply.send(None)

    await until(lambda: server.account.held == 0)


async def test_a_message_without_memory_ends_the_connection(serve, raw):
    server = await serve(http_max_input_size=4 * LARGE, memory=LARGE)
    client, sent = await raw(server), frame(large_message())
    # One connection alone may hold half. All is read before the close, which else resets the connection.
    client.send(sent[: LARGE // 2 - 100])
    await until(lambda: server.account.held == LARGE // 2 - 100 - HEAD)

    client.send(sent[LARGE // 2 - 100 : LARGE // 2 + 100])

    close = struct.pack(">H", aiohttp.WSCloseCode.TRY_AGAIN_LATER)
    assert (await client.rest())[2:].startswith(close + b"no memory for a message")
    await until(lambda: server.account.held == 0)
    assert server.account.refusals == 1


async def test_a_message_whose_rest_does_not_come_ends_the_connection(serve, raw, connect):
    server = await serve(http_max_input_size=4 * LARGE, http_body_timeout_secs=1)
    async with connect(server) as idle:
        client = await raw(server)
        client.send(frame(large_message())[: LARGE // 2])

        assert await client.rest() == b""
        await until(lambda: server.account.held == 0)
        await idle.send_str('{"x":"hi"}')  # one that sends nothing stays
        (await server.reply()).send(None)
        assert await received(idle) == {"final": True}


async def test_bytes_behind_the_handshake_count_too(serve, raw):
    server = await serve(http_max_input_size=4 * LARGE)
    sent = frame(large_message())

    client = await raw(server, sent[: LARGE // 2])
    await until(lambda: server.account.held == LARGE // 2 - HEAD)
    client.send(sent[LARGE // 2 :])
    (await server.reply()).send(None)

    await until(lambda: server.account.held == 0)


async def test_a_message_of_small_fragments_does_not_end_the_connection_later(
    serve, raw, monkeypatch
):
    """Its frames come while the session is busy: it refuses the message before it."""
    busy, go_on, asked = asyncio.Event(), asyncio.Event(), websocket.asked_id

    async def waiting(body):
        if not busy.is_set():
            busy.set()
            await go_on.wait()
            monkeypatch.setattr(websocket, "MOST_REQUESTS", 1)
        return await asked(body)

    monkeypatch.setattr(websocket, "asked_id", waiting)
    monkeypatch.setattr(websocket, "MOST_REQUESTS", 0)
    sizes, came = [], IncomingMessages.came

    def counted(incoming, data):
        sizes.append(len(data))
        came(incoming, data)

    monkeypatch.setattr(IncomingMessages, "came", counted)
    server = await serve(http_max_input_size=4 * LARGE, http_body_timeout_secs=1)
    client, body = await raw(server), json.dumps({"x": "y" * 20_000}).encode()
    last = len(body) - 1
    client.send(frame(b"{}"))
    await busy.wait()
    before = sum(sizes)
    # A text, its continuations, and the last of them, of one byte each.
    first, last = frame(body[:1], 0x01), frame(body[-1:], 0x80)
    fragments = [first, *(frame(body[i : i + 1], 0) for i in range(1, len(body) - 1)), last]
    client.send(b"".join(fragments))
    await until(lambda: sum(sizes) - before == len(first) * len(body))
    go_on.set()
    (await server.reply()).send(None)

    await asyncio.sleep(1.6)  # longer than a message may stall

    client.send(frame(b'{"x":"hi"}'))
    (await server.reply()).send(None)
    await until(lambda: server.account.held == 0)


async def test_a_message_whose_client_leaves_at_once_keeps_no_memory(serve, raw):
    server = await serve(http_max_input_size=4 * LARGE)
    client = await raw(server)

    client.send(frame(large_message()) + frame(b"", 0x88))
    await client.rest()

    await until(lambda: server.account.held == 0)
