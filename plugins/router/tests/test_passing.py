"""Passing: requests of the v2 protocol on the port for operators."""

import asyncio
import gzip
import json
import threading

import pytest
from routing.requests import ask, inputs, outputs, until
from routing.running import good, said, silent

pytest.importorskip("core_console", reason="core-web-console is not installed")

INFER = "/v2/models/{}/infer"


def post(path, body=b"{}"):
    return b"POST %b HTTP/1.1\r\nHost: localhost\r\nContent-Length: %d\r\n\r\n%b" % (
        path.encode(),
        len(body),
        body,
    )


def test_a_caller_that_leaves_ends_its_request(route, scripted, raw):
    server = scripted(silent)
    router = route([server.name])
    caller = raw(router.admin)
    caller.send(post(INFER.format("m")))
    until(lambda: server.requests)
    assert router.servers()[server.name]["in_flight"] == 1

    caller.close()

    until(lambda: router.servers()[server.name]["in_flight"] == 0)


def test_a_load_goes_on_without_its_caller(route, scripted, raw):
    left, kept = threading.Event(), []

    async def respond(reader, writer, line, body):
        while not left.is_set():
            await asyncio.sleep(0.01)
        try:
            await asyncio.wait_for(reader.read(1), 0.3)
        except asyncio.TimeoutError:
            kept.append(line)
        writer.write(said(b""))

    servers = [scripted(respond) for _ in range(2)]
    router = route([each.name for each in servers])
    caller = raw(router.admin)
    path = "/v2/repository/models/m/load"
    caller.send(post(path))
    until(lambda: all(each.requests for each in servers))

    caller.close()
    left.set()

    until(lambda: len(kept) == 2)
    assert kept == [f"POST {path} HTTP/1.1"] * 2


def test_a_compressed_body_passes_as_it_is(route, scripted, router):
    packed = gzip.compress(json.dumps(inputs(3.0)).encode())
    headers = {"Content-Encoding": "gzip", "Content-Type": "application/json"}
    echo = route([scripted(good).name])

    assert ask(echo.admin, INFER.format("m"), packed, headers=headers).body == b"good:" + packed
    assert outputs(ask(router.admin, INFER.format("who"), packed, headers=headers))[0] == 3.0


def test_an_upgrade_is_refused_with_the_port_that_has_it(router, raw):
    caller = raw(router.admin)
    caller.send(
        b"GET /v2/models/who/generate_stream HTTP/1.1\r\nHost: localhost\r\nConnection: Upgrade\r\n"
        b"Upgrade: websocket\r\nSec-WebSocket-Version: 13\r\n"
        b"Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\n\r\n"
    )

    status, _, body = caller.receive()

    assert status == 501
    assert f"port {router.port}" in json.loads(body)["error"]


@pytest.mark.parametrize("declared", [True, False])
def test_large_json_belongs_to_no_sequence(route, scripted, declared):
    server = scripted(good)
    server.config = {"sequence_batching": {}} if declared else {}
    router = route([server.name], {"kept_body_bytes": 1000})
    body = json.dumps(inputs(*range(1000), sequence_id=7)).encode()

    found = ask(router.admin, INFER.format("m"), body).status

    assert found == (413 if declared else 200)
    assert router.metric("core_router_sequences") == 0
    headers = {"Inference-Header-Content-Length": "0"}
    assert ask(router.admin, INFER.format("m"), body, headers=headers).status == 200
