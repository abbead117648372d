"""The connection of a WebSocket: pings, messages that end it, and the stop of the server."""

import asyncio
import json

import aiohttp
from integration.http.scripted_server import MOST_BYTES, PATIENCE_S, until

from frontends.http import websocket

from .conftest import answer, ended, received


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
