"""Passing: requests of the v2 protocol on the port for operators."""

import asyncio
import threading

import pytest
from routing.requests import until
from routing.running import said, silent

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
