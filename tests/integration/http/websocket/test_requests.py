"""Requests of a WebSocket: their answers, errors and deadlines, and how many run at a time."""

import pytest
from integration.http.scripted_server import until

from core.errors import invalid
from frontends.http.websocket import MOST_REQUESTS

from .conftest import answer, received


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
