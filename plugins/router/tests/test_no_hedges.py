"""Requests over HTTP that have no second copy, and copies that are given up."""

import asyncio
import gzip
import json
from concurrent.futures import ThreadPoolExecutor

import pytest
from core_router.http.hedge import Hedge
from routing.hedging import Slow
from routing.requests import ask, inputs, until
from routing.running import Scripted, good, refuse, said, silent

INFER = "/v2/models/m/infer"


def infer(router, path=INFER):
    return ask(router.port, path, inputs(1.0))


def test_errors_are_no_durations(scripted, route):
    async def refused(reader, writer, line, body):
        writer.write(said(b"{}", 401))

    router = route([scripted(refused).name], hedge_quantile=0.5)

    assert infer(router).status == infer(router, "/v2/models/unknown/infer").status == 401
    assert not router.router.hedging._models


def test_a_request_without_another_server_has_no_copy(scripted, route, thread):
    slow = Slow()
    router = route([scripted(slow).name], hedge_quantile=0.5)
    for _ in range(100):
        router.router.hedging.answered("m", 0.03)
    thread.loop.call_soon_threadsafe(lambda: thread.loop.call_later(0.2, slow.goes_on.set))

    assert infer(router).body == b"slow"
    assert router.metric("core_router_hedges") == 0


@pytest.mark.parametrize("how", ["drain", "index"])
def test_a_server_that_left_before_the_delay_gets_no_copy(copying, thread, how):
    slow = Slow()
    servers, router = copying(slow, slow)
    for _ in range(1000):
        router.router.hedging.answered("m", 0.5)
    with ThreadPoolExecutor(1) as pool:
        reply = pool.submit(infer, router)
        until(lambda: servers[0].requests or servers[1].requests)
        other = servers[1] if servers[0].requests else servers[0]
        if how == "drain":
            ask(router.admin, f"/servers/{other.name}/drain", method="POST")
        else:
            other.index = []
            until(lambda: not router.servers()[other.name]["models"])
        thread.loop.call_soon_threadsafe(lambda: thread.loop.call_later(0.7, slow.goes_on.set))

        assert reply.result().body == b"slow"
    assert not other.requests and router.metric("core_router_hedges") == 0


def test_a_copy_whose_server_goes_down_leaves_the_request_to_the_first(scripted, route, thread):
    copied = asyncio.Event()
    lines = []

    async def respond(reader, writer, line, body):
        lines.append(line)
        if len(lines) == 1:
            await copied.wait()
            await refuse(reader, writer, line, body)
        elif len(lines) == 2:
            await silent(reader, writer, line, body)
        else:
            await good(reader, writer, line, body)

    router = route([scripted(respond).name for _ in range(3)], hedge_quantile=0.5)
    for _ in range(100):
        router.router.hedging.answered("m", 0.03)
    with ThreadPoolExecutor(1) as pool:
        reply = pool.submit(infer, router)
        until(lambda: len(lines) == 2)
        thread.loop.call_soon_threadsafe(move_copies, router.router)
        thread.loop.call_soon_threadsafe(copied.set)

        assert reply.result().body.startswith(b"good:")
    assert router.metric("core_router_in_flight") == 0


def move_copies(router):
    for server in router.table.servers.values():
        if any(isinstance(each.request.client, Hedge) for each in server.busy):
            server.move_requests()


JSON = json.dumps(inputs(1.0)).encode()
ZIPPED = {"Content-Encoding": "gzip"}


@pytest.mark.parametrize(
    ("path", "body", "headers"),
    [
        (INFER, json.dumps(inputs(1.0, sequence_id=5)).encode(), {}),
        (INFER, JSON.replace(b'"data"', b'"parameters":{"shared_memory_region":"a"},"data"'), {}),
        (INFER, gzip.compress(JSON), ZIPPED),
        (INFER, b"inputs=1", {}),
        ("/v2/models/m/generate_stream", b"{}", {}),
        ("/v2/models/m/generate%5fstream", b"{}", {}),
        ("/v1/completions", b'{"model":"m", "stream": true}', {}),
    ],
)
def test_requests_that_two_servers_must_not_execute_have_no_copy(
    copying, thread, path, body, headers
):
    slow = Slow()
    servers, router = copying(slow, slow)
    thread.loop.call_soon_threadsafe(lambda: thread.loop.call_later(0.2, slow.goes_on.set))

    assert ask(router.port, path, body, headers=headers).body == b"slow"
    assert sum(len(each.requests) for each in servers) == 1


@pytest.mark.parametrize(
    "config",
    [
        {"sequence_batching": {}},
        {"model_transaction_policy": {"decoupled": True}},
    ],
)
@pytest.mark.parametrize("is_step", [False, True])
def test_models_with_sequences_or_many_responses_have_no_copies(
    copying, thread, monkeypatch, config, is_step
):
    monkeypatch.setattr(
        Scripted, "configs", {"m": STEPS, "s": config} if is_step else {"m": config}
    )
    slow = Slow()
    servers, router = copying(slow, slow)
    thread.loop.call_soon_threadsafe(lambda: thread.loop.call_later(0.2, slow.goes_on.set))

    assert infer(router).body == b"slow"
    assert sum(len(each.requests) for each in servers) == 1


STEPS = {"ensemble_scheduling": {"step": [{"model_name": "s"}, {"model_name": "m"}]}}


def test_servers_without_an_index_get_no_copies(copying, thread, monkeypatch):
    monkeypatch.setattr(Scripted, "index_status", 401)
    slow = Slow()
    servers, router = copying(slow, slow)
    thread.loop.call_soon_threadsafe(lambda: thread.loop.call_later(0.2, slow.goes_on.set))

    assert infer(router).body == b"slow"
    assert sum(len(each.requests) for each in servers) == 1
