"""generate_stream over WebSocket: a real HttpFrontend, a real client, a server with responses of a test."""

import asyncio
import json
import ssl
import struct
from types import SimpleNamespace

import aiohttp
import numpy as np
import pytest

from core import dtypes
from core.config import InputSpec, Signature
from core.errors import invalid, not_found
from core.options import Options
from core.response import InferenceResponse, Reply
from core.system.account import MemoryAccount
from core.telemetry.tracing import Tracer
from core.tensor import Tensor
from frontends.http import websocket
from frontends.http.extra_routes import HttpRoutes
from frontends.http.frontend import HttpFrontend
from frontends.http.websocket import MOST_REQUESTS
from frontends.shared.access.caller_names import CallerNames
from frontends.shared.call_observers import CallObservers
from frontends.shared.context import FrontendContext
from frontends.shared.memory import SharedMemoryRegions
from frontends.shared.watched_files import WatchedFiles

PATIENCE_S = 20
MOST_BYTES = 10_000


class ScriptedServer:
    """One model `m` with the text `x`; passes the Reply of each request to the test."""

    def __init__(self, lane, memory=1 << 30, http_max_input_size=MOST_BYTES, **options):
        self.options = Options.defaults(
            http_address="127.0.0.1",
            http_port=0,
            http_lane=lane,
            http_max_input_size=http_max_input_size,
            **options,
        )
        self.account = MemoryAccount(memory, 0)
        self.control = SimpleNamespace(areas={})
        self.models = self
        self.endpoints = None  # these tests use streams only
        self.tracing = Tracer(self.options)
        self.replies = asyncio.Queue()
        self.control = SimpleNamespace(areas={})

    def shared(self, factory):
        if factory is HttpRoutes:
            return HttpRoutes(self)
        if factory is FrontendContext:
            observers = CallObservers()
            return SimpleNamespace(
                policy=None,
                access_log=None,
                names=CallerNames(),
                files=WatchedFiles(0),
                observers=observers,
            )
        return SimpleNamespace(regions=SharedMemoryRegions(False))

    def signature(self, name, version=-1):
        if name != "m":
            raise not_found(f"Request for unknown model: '{name}' is not found")
        return Signature("m", 1, {"x": InputSpec("x", dtypes.BYTES, (1,))}, {}, 0, True)

    def infer(self, request):
        reply = Reply(request)
        self.replies.put_nowait(reply)
        return reply

    async def reply(self):
        return await asyncio.wait_for(self.replies.get(), PATIENCE_S)


@pytest.fixture
async def serve(lane):
    """Start a frontend; its server."""
    started = []

    async def start(**options):
        server = ScriptedServer(lane, **options)
        server.frontend = HttpFrontend(server)
        await server.frontend.start()
        started.append(server.frontend)
        return server

    yield start
    for frontend in started:
        await frontend.stop(1)


@pytest.fixture
async def connect():
    """Open a WebSocket to a server."""
    async with aiohttp.ClientSession() as session:

        def open_socket(server, path="/v2/models/m/generate_stream", **options):
            scheme = "https" if "ssl" in options else "http"
            url = f"{scheme}://127.0.0.1:{server.frontend.port}{path}"
            return session.ws_connect(url, **options)

        yield open_socket


def answer(reply, number):
    outputs = [Tensor.of("number", np.array([number], np.int32))]
    return InferenceResponse("m", 1, outputs, id=reply.request.id)


async def received(socket):
    return json.loads(await asyncio.wait_for(socket.receive_str(), PATIENCE_S))


async def ended(socket):
    """The close code."""
    message = await asyncio.wait_for(socket.receive(), PATIENCE_S)
    assert message.type is aiohttp.WSMsgType.CLOSE, message
    return message.data


async def until(condition):
    async def wait():
        while not condition():
            await asyncio.sleep(0.01)

    await asyncio.wait_for(wait(), PATIENCE_S)


@pytest.mark.parametrize("version", ["", "/versions/1"])
async def test_each_answer_is_a_message_and_the_last_is_followed_by_the_end(
    serve, connect, version
):
    server = await serve()
    async with connect(server, f"/v2/models/m{version}/generate_stream") as socket:
        await socket.send_str('{"x":"hi","temperature":0.5}')
        reply = await server.reply()
        for number in range(3):
            reply.send(answer(reply, number), final=False)
            expected = {"model_name": "m", "model_version": "1", "number": number}
            assert await received(socket) == expected
        reply.send(None)

        assert await received(socket) == {"final": True}
        assert reply.request.inputs["x"].array[0] == b"hi"
        assert reply.request.parameters == {"temperature": 0.5}


async def test_requests_of_one_connection_run_side_by_side(serve, connect):
    server = await serve()
    async with connect(server) as socket:
        await socket.send_str('{"x":"1","id":"first"}')
        first = await server.reply()
        await socket.send_str('{"x":"2","id":"second"}')
        second = await server.reply()

        second.send(answer(second, 2))
        assert (await received(socket))["id"] == "second"
        assert await received(socket) == {"final": True, "id": "second"}
        first.send(answer(first, 1))
        assert (await received(socket))["id"] == "first"
        assert await received(socket) == {"final": True, "id": "first"}


async def test_an_error_among_answers_is_a_message_with_the_id(serve, connect):
    server = await serve()
    async with connect(server) as socket:
        await socket.send_str('{"x":"hi","id":"a"}')
        reply = await server.reply()
        reply.send(invalid("not this one"), final=True)

        assert await received(socket) == {"error": "not this one", "id": "a"}
        assert await received(socket) == {"final": True, "id": "a"}


@pytest.mark.parametrize(
    ("text", "id"),
    [("{", None), ("[]", None), ('{"x":[1,2],"id":"a"}', "a"), ('{"id":7}', None)],
)
async def test_a_request_that_is_refused_leaves_the_connection_open(serve, connect, text, id):
    server = await serve()
    async with connect(server) as socket:
        await socket.send_str(text)

        refusal = await received(socket)
        assert refusal["error"]
        assert refusal.get("id") == id
        assert (await received(socket))["final"]
        await socket.send_str('{"x":"hi"}')
        (await server.reply()).send(None)
        assert await received(socket) == {"final": True}


async def test_a_deadline_of_the_handshake_is_that_of_each_request(serve, connect):
    server = await serve()
    async with connect(server, headers={"grpc-timeout": "200m"}) as socket:
        for _ in range(2):
            await socket.send_str('{"x":"hi","id":"1"}')
            reply = await server.reply()

            assert await received(socket) == {"error": "Deadline Exceeded", "id": "1"}
            assert await received(socket) == {"final": True, "id": "1"}
            assert reply.request.cancelled


async def test_a_deadline_that_is_none_is_refused_before_the_handshake(serve, connect):
    server = await serve()

    with pytest.raises(aiohttp.WSServerHandshakeError) as error:
        await connect(server, headers={"grpc-timeout": "soon"})

    assert error.value.status == 400


async def test_a_client_that_goes_cancels_its_requests(serve, connect):
    server = await serve()
    async with connect(server) as socket:
        await socket.send_str('{"x":"hi"}')
        reply = await server.reply()

        await socket.close()

    await until(lambda: reply.request.cancelled)


async def test_a_request_beyond_those_allowed_at_a_time_is_refused(serve, connect):
    server = await serve()
    async with connect(server) as socket:
        for number in range(MOST_REQUESTS + 1):
            await socket.send_str(f'{{"x":"hi","id":"{number}"}}')
        replies = [await server.reply() for _ in range(MOST_REQUESTS)]

        refusal = await received(socket)
        assert "16 requests of this WebSocket" in refusal["error"]
        assert refusal["id"] == "16"
        assert await received(socket) == {"final": True, "id": "16"}
        replies[0].send(None)
        assert await received(socket) == {"final": True, "id": "0"}
        await socket.send_str('{"x":"hi"}')
        await server.reply()


async def test_a_message_that_is_too_large_ends_the_connection(serve, connect):
    server = await serve()
    async with connect(server) as socket:
        await socket.send_str(json.dumps({"x": "y" * MOST_BYTES}))

        assert await ended(socket) == aiohttp.WSCloseCode.MESSAGE_TOO_BIG


async def test_a_binary_message_ends_the_connection(serve, connect):
    server = await serve()
    async with connect(server) as socket:
        await socket.send_bytes(b"{}")

        assert await ended(socket) == aiohttp.WSCloseCode.UNSUPPORTED_DATA


async def test_a_ping_is_answered(serve, connect):
    server = await serve()
    async with connect(server, autoping=False) as socket:
        await socket.ping(b"here?")

        message = await asyncio.wait_for(socket.receive(), PATIENCE_S)
        assert (message.type, bytes(message.data)) == (aiohttp.WSMsgType.PONG, b"here?")


async def test_an_idle_client_gets_a_ping_and_stays_if_it_answers(serve, connect, monkeypatch):
    monkeypatch.setattr(websocket, "HEARTBEAT_S", 0.1)
    server = await serve()
    async with connect(server, autoping=False) as socket:
        for _ in range(3):
            message = await asyncio.wait_for(socket.receive(), PATIENCE_S)
            assert message.type is aiohttp.WSMsgType.PING
            await socket.pong(message.data)

        await socket.send_str('{"x":"hi"}')
        reply = await server.reply()
        reply.send(answer(reply, 1), True)
        while (message := await asyncio.wait_for(socket.receive(), PATIENCE_S)).type is (
            aiohttp.WSMsgType.PING
        ):
            await socket.pong(message.data)
        assert json.loads(message.data)["number"] == 1


async def test_a_client_that_answers_no_ping_loses_its_requests(serve, connect, monkeypatch):
    monkeypatch.setattr(websocket, "HEARTBEAT_S", 0.1)
    server = await serve()
    async with connect(server, autoping=False) as socket:
        await socket.send_str('{"x":"hi"}')
        reply = await server.reply()

        await until(lambda: reply.request.cancelled)


async def test_it_is_there_over_tls(serve, connect, certificates):
    server = await serve(
        http_use_ssl=True,
        http_server_cert=str(certificates.server_crt),
        http_server_key=str(certificates.server_key),
    )
    trusted = ssl.create_default_context(cafile=certificates.root_crt)
    async with connect(server, ssl=trusted) as socket:
        await socket.send_str('{"x":"hi"}')
        reply = await server.reply()
        reply.send(answer(reply, 1), True)

        assert (await received(socket))["number"] == 1
        assert await received(socket) == {"final": True}


async def test_a_stopping_server_finishes_running_requests_and_sends_a_close_frame(serve, connect):
    server = await serve()
    async with connect(server) as socket, connect(server) as idle:
        await socket.send_str('{"x":"hi"}')
        reply = await server.reply()

        stopping = asyncio.ensure_future(server.frontend.stop(PATIENCE_S))
        assert await ended(idle) == aiohttp.WSCloseCode.GOING_AWAY
        reply.send(answer(reply, 1))

        assert (await received(socket))["number"] == 1
        assert await received(socket) == {"final": True}
        assert await ended(socket) == aiohttp.WSCloseCode.GOING_AWAY
        await stopping


async def test_unfinished_requests_of_a_stopping_server_get_the_reason(serve, connect):
    server = await serve()
    async with connect(server) as socket:
        await socket.send_str('{"x":"hi","id":"a"}')
        reply = await server.reply()
        reply.send(answer(reply, 1), False)
        assert (await received(socket))["number"] == 1

        stopping = asyncio.ensure_future(server.frontend.stop(0.05))

        assert await received(socket) == {
            "error": "the server is shutting down, and the request was not done within "
            "--exit-timeout-secs=0.05",
            "id": "a",
        }
        assert await received(socket) == {"final": True, "id": "a"}
        assert await ended(socket) == aiohttp.WSCloseCode.GOING_AWAY
        await stopping
        assert reply.request.cancelled


@pytest.mark.parametrize(
    ("path", "status"),
    [
        ("/v2/models/other/generate_stream", 404),
        ("/v2/models/m/generate", 405),
        ("/v2/models/m/versions/99999999999999999999/generate_stream", 400),
        ("/v2/nothing", 404),
    ],
)
async def test_a_path_without_stream_is_refused_before_the_handshake(serve, connect, path, status):
    server = await serve()
    with pytest.raises(aiohttp.WSServerHandshakeError) as error:
        await connect(server, path)

    assert error.value.status == status


async def test_a_page_of_another_origin_is_refused(serve, connect):
    server = await serve()
    with pytest.raises(aiohttp.WSServerHandshakeError) as error:
        await connect(server, origin="http://elsewhere.example")
    assert error.value.status == 403

    async with connect(server, origin=f"http://127.0.0.1:{server.frontend.port}") as socket:
        assert not socket.closed


async def test_a_restricted_interface_needs_its_header(serve, connect):
    server = await serve(http_restricted_api={"inference": ("key", "secret")})
    with pytest.raises(aiohttp.WSServerHandshakeError) as error:
        await connect(server)
    assert error.value.status == 403

    async with connect(server, headers={"key": "secret"}) as socket:
        assert not socket.closed


class RawClient:
    """Sends any part of a frame."""

    HEAD = (
        "GET /v2/models/m/generate_stream HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\n"
        "Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
        "Sec-WebSocket-Key: AAAAAAAAAAAAAAAAAAAAAA==\r\n\r\n"
    )

    @classmethod
    async def of(cls, server):
        found = cls()
        address = "127.0.0.1", server.frontend.port
        found.reader, found.writer = await asyncio.open_connection(*address)
        found.send(cls.HEAD.encode())
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

    async def connect(server):
        opened.append(await RawClient.of(server))
        return opened[-1]

    yield connect
    for each in opened:
        each.close()


LARGE = 1_000_000  # bytes, too many for no charge


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
    await until(lambda: server.account.held == LARGE // 2 - 100)

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


async def test_a_message_whose_client_leaves_at_once_keeps_no_memory(serve, raw):
    server = await serve(http_max_input_size=4 * LARGE)
    client = await raw(server)

    client.send(frame(large_message()) + frame(b"", 0x88))
    await client.rest()

    await until(lambda: server.account.held == 0)
