"""Many requests on one connection: their order, clients that go or do not read, and the end."""

import asyncio
import json
import socket

import numpy as np
import pytest
import uvloop
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from integration.http.test_lanes import BODY, HEALTH, INFER, JSON_OF_NONE, head

import frontends.http.connections as connections


@pytest.fixture(params=[False, True], ids=["plain", "tls"])
def over_tls(request):
    """Run all tests here over TLS, too."""
    return request.param


# Order --------------------------------------------------------------------------------------


def infer_of(number, model="echo", extra=""):
    tensor = {"name": "x", "datatype": "FP32", "shape": [1], "data": [number]}
    if model == "rows":
        tensor = {"name": "x", "datatype": "INT32", "shape": [1, 2], "data": [number, 0]}
    body = json.dumps({"id": str(number), "inputs": [tensor]}).encode()
    return (
        f"POST /v2/models/{model}/infer HTTP/1.1\r\nHost: x\r\n{extra}"
        f"Content-Length: {len(body)}\r\n\r\n"
    ).encode() + body


def chunked_of(number):
    message, body = infer_of(number).split(b"\r\n\r\n")
    first = message[: message.index(b"Content-Length")]
    return first + b"Transfer-Encoding: chunked\r\n\r\n%x\r\n%s\r\n0\r\n\r\n" % (len(body), body)


# A request, and a text that identifies its response.
KINDS = {
    "lane": lambda n: (infer_of(n), f'"id":"{n}"'),
    "identity": lambda n: (infer_of(n, extra="Content-Encoding: identity\r\n"), f'"id":"{n}"'),
    "chunks": lambda n: (chunked_of(n), f'"id":"{n}"'),
    "path": lambda n: (f"GET /v2/models/m{n} HTTP/1.1\r\nHost: x\r\n\r\n".encode(), f"'m{n}'"),
    "unknown": lambda n: (infer_of(n, model=f"m{n}"), f"'m{n}'"),
    "batched": lambda n: (infer_of(n, model="rows"), f'"id":"{n}"'),
}


@pytest.mark.parametrize("lane", ["auto"])
@settings(max_examples=60, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(data=st.data())
def test_any_mix_in_any_pieces_is_answered_in_order(open_anew, data):
    kinds = data.draw(st.lists(st.sampled_from(sorted(KINDS)), min_size=1, max_size=12))
    asked = [KINDS[kind](number) for number, kind in enumerate(kinds)]
    stream = b"".join(message for message, _ in asked)
    cuts = data.draw(st.lists(st.integers(0, len(stream)), max_size=12))
    pauses = data.draw(st.lists(st.booleans(), min_size=len(cuts) + 1, max_size=len(cuts) + 1))
    bounds = [0, *sorted(cuts), len(stream)]

    async def run():
        async with open_anew() as site:
            connection, other = await site.connect(), await site.connect()
            for begin, end, pause in zip(bounds, bounds[1:], pauses, strict=False):
                connection.send(stream[begin:end])
                if pause:
                    await other.ask("GET", "/v2/health/live")  # the server has seen the bytes
            return [await connection.reply() for _ in asked]

    replies = asyncio.run(run())

    for reply, (_, mark) in zip(replies, asked, strict=True):
        assert mark in reply.json.get("error", "") or mark in reply.body.decode()


async def test_an_answer_waits_for_those_before_it(site):
    connection, other = await site.connect(), await site.connect()
    connection.send(infer_of(0, "gated") + infer_of(1) + HEALTH + infer_of(2))
    await asyncio.wait_for(site.backend.running.wait(), 10)
    assert (await other.ask("GET", "/v2/health/live")).status == 200
    site.backend.gate.set()

    replies = [await connection.reply() for _ in range(4)]

    assert [reply.json["id"] for reply in (*replies[:2], replies[3])] == ["0", "1", "2"]
    assert replies[2].body == b""


@pytest.mark.parametrize("lane", ["auto"])
async def test_requests_after_a_slow_one_continue_meanwhile(site):
    connection = await site.connect()
    connection.send(infer_of(0, "gated") + infer_of(1) + infer_of(2))
    await asyncio.wait_for(site.backend.running.wait(), 10)
    await site.ask("GET", "/v2/health/live")

    assert [request.id for request in site.backend.requests] == ["0", "1", "2"]


@pytest.mark.parametrize("lane", ["auto"])
async def test_no_more_than_64_requests_of_one_connection_run_at_a_time(site):
    connection = await site.connect()
    connection.send(infer_of(0, "gated") + b"".join(infer_of(n) for n in range(1, 200)))
    await asyncio.wait_for(site.backend.running.wait(), 10)
    assert await taken(site) == 64

    site.backend.gate.set()

    assert [(await connection.reply()).json["id"] for _ in range(200)] == [
        str(n) for n in range(200)
    ]


@pytest.mark.parametrize("lane", ["auto"])
async def test_answers_of_one_turn_leave_in_one_write(site, monkeypatch):
    connection = await site.connect()
    connection.send(b"".join(infer_of(n) for n in range(20)))
    await asyncio.sleep(0)

    first = await connection.reader.readuntil(b'"id":"19"')

    assert first.count(b"HTTP/1.1 200") == 20


async def taken(site):
    """Return the number of requests that reached models, when no more arrive."""
    before = -1
    while before != len(site.backend.requests):
        before = len(site.backend.requests)
        for _ in range(20):
            await site.ask("GET", "/v2/health/live")
    return before


# Clients that go, or do not read ---------------------------------------------------------------


async def test_a_disconnected_client_cancels_requests_that_wait_behind_the_first(site):
    connection = await site.connect()
    connection.send(infer_of(0, "gated"))
    await asyncio.wait_for(site.backend.running.wait(), 10)
    cancelled = asyncio.Event()
    site.backend.requests[0].on_cancel(cancelled.set)
    connection.send(infer_of(1))

    connection.cut()

    await asyncio.wait_for(cancelled.wait(), 10)
    assert (await site.infer("echo", BODY)).status == 200


@pytest.mark.parametrize("lane", ["auto"])
async def test_a_client_that_does_not_read_is_not_read_either(site):
    connection = await site.connect()
    connection.writer.get_extra_info("socket").setsockopt(
        socket.SOL_SOCKET, socket.SO_RCVBUF, 65536
    )
    tensor = bytes(400_000)
    large = head(f"Content-Length: {len(tensor)}", "Inference-Header-Content-Length: 0") + tensor
    for _ in range(60):
        connection.send(large)

    assert await taken(site) < 60

    for _ in range(60):
        reply = await connection.reply()
        assert reply.body.endswith(tensor)


@pytest.mark.parametrize("new_loop", [asyncio.new_event_loop, uvloop.new_event_loop])
def test_large_bodies_are_whole_however_they_come(open_with, new_loop):
    tensors = [np.arange(count, dtype=np.float32) for count in (70_000, 150_000, 1_500_000)]

    async def client(connection):
        for _ in range(3):
            for tensor in tensors:
                raw = tensor.tobytes()
                connection.send(head(f"Content-Length: {len(raw)}", JSON_OF_NONE))
                for at in range(0, len(raw), 300_000):
                    connection.send(raw[at : at + 300_000])
                    await asyncio.sleep(0)
                connection.send(HEALTH)  # comes with the end of the body
                assert (await connection.reply()).body.endswith(raw)
                assert (await connection.reply()).status == 200

    async def main():
        async with open_with() as site:
            await asyncio.gather(*[client(await site.connect()) for _ in range(3)])

    loop = new_loop()
    try:
        loop.run_until_complete(main())
    finally:
        loop.close()


# The end of a connection ------------------------------------------------------------------------


async def test_an_idle_connection_is_closed(monkeypatch, open_with, document):
    monkeypatch.setattr(connections, "KEEP_ALIVE_S", 0.05)
    async with open_with() as site:
        silent, used, other = [await site.connect() for _ in range(3)]
        assert (await used.ask("POST", INFER, document(1))).status == 200
        assert (await other.ask("GET", "/v2/health/live")).status == 200

        for connection in (silent, used, other):
            assert await connection.rest() == b""


async def test_a_connection_with_a_request_is_not_idle(monkeypatch, open_with):
    monkeypatch.setattr(connections, "KEEP_ALIVE_S", 0.02)
    async with open_with() as site:
        connection = await site.connect()
        connection.send(infer_of(0, "gated"))
        await asyncio.wait_for(site.backend.running.wait(), 10)
        silent = await site.connect()
        assert await silent.rest() == b""  # the time is over
        site.backend.gate.set()

        assert (await connection.reply()).status == 200
        assert await connection.rest() == b""


@pytest.mark.parametrize("lane", ["auto"])
async def test_stopping_waits_for_a_body_that_is_still_coming(site):
    connection = await site.connect()
    data = infer_of(0)
    connection.send(data[:-5])
    await site.ask("GET", "/v2/health/live")

    stopping = asyncio.ensure_future(site.frontend.stop(30))
    await asyncio.sleep(0)
    connection.send(data[-5:] + infer_of(1))

    assert (await connection.reply()).json["id"] == "0"
    assert await connection.rest() == b""
    await asyncio.wait_for(stopping, 10)


async def test_stopping_answers_all_running_requests(site):
    connection = await site.connect()
    connection.send(infer_of(0, "gated") + infer_of(1))
    await asyncio.wait_for(site.backend.running.wait(), 10)
    await site.ask("GET", "/v2/health/live")
    stopping = asyncio.ensure_future(site.frontend.stop(30))
    await asyncio.sleep(0)

    site.backend.gate.set()

    assert (await connection.reply()).json["id"] == "0"
    await connection.rest()
    await asyncio.wait_for(stopping, 10)
