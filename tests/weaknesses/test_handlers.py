"""Unexpected input of handlers: members of any type, invalid bodies, unexpected exceptions."""

import dataclasses
import http.client
import itertools
import json

import grpc
import pytest

from frontends.grpc import frontend
from frontends.grpc.method import StreamMethod
from frontends.grpc.requests_in_flight import RequestsInFlight
from frontends.grpc.table import methods
from frontends.http import frontend as http_frontend
from frontends.http.route_templates import templates
from frontends.http.router import table

MEMBERS = (
    *("inputs", "outputs", "parameters", "key", "offset", "byte_size", "raw_handle", "device_id"),
    *("ready", "log_verbose_level", "log_format", "trace_level", "trace_rate", "trace_count", "x"),
)
VALUES = (None, -1, 2**64, "\ud800\0", [None], {"": []})
BODIES = (
    *(b"null", b"0", b'"x"', b"[]", b"[[]]", b"{", b"\xff\xfe", b"\0", b'{"":}', b"NaN"),
    *(b'{"inputs":[{"name":1,"shape":{},"datatype":[]}]}', b'{"outputs":[[]],"inputs":[[]]}'),
    *(b'{"parameters":{"config":1}}', b'{"parameters":{"file:1/x":{}}}'),
    *(b'{"parameters":{"unload_dependents":[]}}', b'{"raw_handle":{"b64":5}}'),
    *(json.dumps({member: value}).encode() for member in MEMBERS for value in VALUES),
)
MESSAGES = (
    *(b"\0", b"\xff" * 9, b"\x0a\xff\xff\xff\xff\x0f", b"\x0a\x02\xc3\x28", b"\x08\xff"),
    *(bytes([field << 3 | kind]) + b"\1\1" for field in range(1, 8) for kind in (0, 2)),
    *(bytes([field << 3 | 2]) + b"\3\x0a\1x" for field in range(1, 8)),
)
BLAMED = ("unexpected error", "see the log")


class _Strange(Exception):
    """An exception whose text raises an exception."""

    def __str__(self):
        raise ValueError("not even that")


def paths(route, model):
    for path in templates(route.path.pattern):
        yield path.format(model=model, version="1", region="r", repository="q", file="f")


def call(server, path, method, message):
    """Call a method of gRPC with any bytes."""
    channel = server.channel_now()
    if isinstance(method, StreamMethod):
        list(channel.stream_stream(path)(iter([message]), timeout=30))
    else:
        channel.unary_unary(path)(message, timeout=30)


@pytest.fixture
def settings(server):
    """The settings of the server are as they were once the test is over."""
    before = {
        path: json.loads(server.ask("GET", path).body)
        for path in ("/v2/logging", "/v2/trace/setting")
    }
    yield
    for path, found in before.items():
        answer = server.ask("POST", path, {k: v for k, v in found.items() if k not in FIXED})
        assert answer.status == 200, answer.body
    server.ask("POST", "/v2/repository/models/echo/load", {})


FIXED = ("log_file", "trace_file", "trace_mode")


def test_every_route_has_an_answer_to_every_body(server, settings):
    """CVE-2025-33201, CVE-2025-23336: a payload raised what no handler caught, and the server ended."""
    connection = http.client.HTTPConnection("127.0.0.1", server.http.port, timeout=30)
    blamed = []

    for route in table(server.server.control.areas):
        # A model that is there, once; the other paths of a route have the same handler.
        path = next(paths(route, "echo"))
        for body in BODIES if "POST" in route.methods else ():
            connection.request("POST", path, body)
            answer = connection.getresponse()
            text = answer.read().decode()
            if answer.status not in range(200, 502) or any(words in text for words in BLAMED):
                blamed.append((path, body, answer.status, text[:200]))
    connection.close()

    assert blamed == []


def test_every_method_of_grpc_has_an_answer_to_every_message(server):
    blamed = []

    for path, method in methods(server.server, RequestsInFlight()).items():
        for message in MESSAGES:
            try:
                call(server, path, method, message)
            except grpc.RpcError as error:
                if any(words in error.details() for words in BLAMED):
                    blamed.append((path, message, error.details()))

    assert blamed == []


def test_an_unexpected_exception_is_an_error_response(serve, lanes, monkeypatch):
    errors = itertools.cycle([RuntimeError("x"), RecursionError(), MemoryError(), _Strange()])

    async def unary(*_):
        raise next(errors)

    async def stream(*_):
        raise next(errors)
        yield

    def broken(*arguments):
        return {
            path: dataclasses.replace(each, function=stream)
            if isinstance(each, StreamMethod)
            else dataclasses.replace(each, function=unary, begin=None)
            for path, each in methods(*arguments).items()
        }

    monkeypatch.setattr(
        http_frontend,
        "table",
        lambda areas: tuple(each._replace(service=unary) for each in table(areas)),
    )
    monkeypatch.setattr(frontend, "methods", broken)
    served = serve()
    connection = http.client.HTTPConnection("127.0.0.1", served.http.port, timeout=30)

    for route in table(served.server.control.areas):
        for method, path in itertools.product(route.methods, paths(route, "echo")):
            if lanes == "fast" and path.endswith("/infer"):
                continue  # it has no service
            connection.request(method, path, b"-")
            answer = connection.getresponse()
            text = json.loads(answer.read())["error"]
            assert (answer.status, "unexpected error in the server" in text) == (500, True), path
    connection.close()

    for path, each in methods(served.server, RequestsInFlight()).items():
        for _ in range(4):
            with pytest.raises(grpc.RpcError) as caught:
                call(served, path, each, b"")
            assert caught.value.code() is grpc.StatusCode.INTERNAL, path
