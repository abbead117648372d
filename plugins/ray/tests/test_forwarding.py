"""Requests of Serve's proxies reach the HTTP port of a server, and their responses come back unchanged."""

import asyncio
import json
import socket
import threading

import numpy as np
import pytest
from core_ray.forwarding import HttpForwarder
from core_ray.ports import open_port, reached_at

import core


@pytest.fixture(scope="module")
def server():
    """A server in this process; its models `double`, `count` and `wait` are functions."""

    def count(n):
        for i in range(int(n[0])):
            yield np.array([i], np.int32)

    begun, cancelled = threading.Event(), threading.Event()

    async def wait(n):
        begun.set()
        try:
            await asyncio.sleep(60)
        except asyncio.CancelledError:
            cancelled.set()
            raise
        return n

    with core.Server() as made:
        made.bind(
            "double",
            lambda x: 2 * x,
            inputs={"x": ("FP32", [-1])},
            outputs={"y": ("FP32", [-1])},
            batching=True,
        )
        one = ("INT32", [1])
        made.bind("count", count, inputs={"n": one}, outputs={"i": one})
        made.bind("wait", wait, inputs={"n": one}, outputs={"m": one})
        made.begun, made.cancelled = begun, cancelled
        made.port = made.serve(http_port=0)["http"]
        yield made


class Exchange:
    """One request to the forwarder, as Serve passes it: ASGI messages in, and out."""

    def __init__(self, method, path, body=(), headers=(), root_path="", query=b""):
        self.scope = {
            "type": "http",
            "method": method,
            "path": root_path + path,
            "raw_path": (root_path + path).encode(),
            "root_path": root_path,
            "query_string": query,
            "headers": [(b"host", b"example.com"), *headers],
        }
        pieces = list(body) or [b""]
        self._in = [
            {"type": "http.request", "body": each, "more_body": at + 1 < len(pieces)}
            for at, each in enumerate(pieces)
        ]
        self.sent = []

    async def receive(self):
        return self._in.pop(0)

    async def send(self, message):
        self.sent.append(message)

    @property
    def status(self):
        return self.sent[0]["status"]

    @property
    def fields(self):
        return dict(self.sent[0]["headers"])

    @property
    def pieces(self):
        return [each["body"] for each in self.sent[1:] if each["body"]]

    @property
    def json(self):
        return json.loads(b"".join(self.pieces))


def pass_on(server, exchange):
    return pass_on_to(f"http://127.0.0.1:{server.port}", exchange)


def pass_on_to(url, exchange):
    async def run():
        forwarder = HttpForwarder(url)
        try:
            await forwarder(exchange.scope, exchange.receive, exchange.send)
        finally:
            await forwarder.close()

    asyncio.run(run())
    return exchange


def infer(model, **inputs):
    described = [
        {"name": name, "shape": list(each.shape), "datatype": kind, "data": each.ravel().tolist()}
        for name, (kind, each) in inputs.items()
    ]
    return json.dumps({"id": "mine", "inputs": described}).encode()


def length(*pieces):
    return (b"content-length", str(sum(map(len, pieces))).encode())


def test_a_request_is_answered_by_the_routes_of_the_server(server):
    body = infer("double", x=("FP32", np.array([[1, 2]])))

    found = pass_on(server, Exchange("POST", "/v2/models/double/infer", [body], [length(body)]))

    assert found.status == 200
    assert found.json["outputs"][0]["data"] == [2.0, 4.0]
    assert found.json["id"] == "mine"
    assert found.sent[-1] == {"type": "http.response.body", "body": b"", "more_body": False}


@pytest.mark.parametrize("address", ["::1", "::"])
def test_a_server_at_an_address_of_ipv6_is_reached(address):
    try:
        socket.create_server(("::1", 0), family=socket.AF_INET6).close()
    except OSError:
        pytest.skip("this machine has no IPv6")
    with core.Server() as server:
        port = open_port(server, "http", 0, address)
        found = pass_on_to(
            f"http://{reached_at(address, port)}", Exchange("GET", "/v2/health/live")
        )

    assert found.status == 200


def test_a_body_without_a_length_is_passed_on_in_its_pieces(server):
    body = infer("double", x=("FP32", np.array([[1, 2]])))

    found = pass_on(
        server,
        Exchange(
            "POST",
            "/v2/models/double/infer",
            [body[:10], body[10:40], body[40:]],
            [(b"transfer-encoding", b"chunked")],
        ),
    )

    assert found.json["outputs"][0]["data"] == [2.0, 4.0]


def test_tensors_in_binary_come_back_in_binary(server):
    x = np.arange(300_000, dtype=np.float32)
    head = {
        "inputs": [
            {
                "name": "x",
                "shape": [1, x.size],
                "datatype": "FP32",
                "parameters": {"binary_data_size": x.nbytes},
            }
        ],
        "parameters": {"binary_data_output": True},
    }
    text = json.dumps(head).encode()
    body = [text, x.tobytes()[:600_000], x.tobytes()[600_000:]]
    headers = [
        (b"inference-header-content-length", str(len(text)).encode()),
        length(*body),
    ]

    found = pass_on(server, Exchange("POST", "/v2/models/double/infer", body, headers))

    head_size = int(found.fields[b"inference-header-content-length"])
    y = np.frombuffer(b"".join(found.pieces)[head_size:], np.float32)
    np.testing.assert_array_equal(y, 2 * x)


def test_the_route_prefix_of_the_application_is_not_part_of_the_path(server):
    found = pass_on(server, Exchange("GET", "/v2/models/double", root_path="/models"))

    assert found.json["name"] == "double"


def test_path_and_query_are_passed_as_received(server):
    server.bind("b c", lambda x: x, example={"x": np.zeros((1, 1), np.float32)})

    found = pass_on(server, Exchange("GET", "/v2/models/b%20c/ready", query=b"x=%20"))

    assert found.status == 200


def test_an_error_keeps_its_status_and_its_text(server):
    found = pass_on(server, Exchange("GET", "/v2/models/unknown"))

    assert found.status in (400, 404)
    assert "unknown" in found.json["error"]


def test_each_event_of_a_stream_is_sent_when_it_arrives(server):
    body = json.dumps({"n": 3}).encode()

    found = pass_on(
        server, Exchange("POST", "/v2/models/count/generate_stream", [body], [length(body)])
    )

    assert found.fields[b"content-type"].startswith(b"text/event-stream")
    events = b"".join(found.pieces).decode().strip().split("\n\n")
    assert [json.loads(each.removeprefix("data: "))["i"] for each in events] == [0, 1, 2]


def test_fields_of_the_connection_are_not_passed_on(server):
    headers = [(b"connection", b"upgrade"), (b"upgrade", b"websocket"), (b"te", b"trailers")]

    found = pass_on(server, Exchange("GET", "/v2/health/live", headers=headers))

    assert found.status == 200
    assert b"transfer-encoding" not in found.fields


@pytest.mark.parametrize(
    "sent, received", [([], b"of serve"), ([(b"x-request-id", b"mine")], b"mine")]
)
def test_a_request_has_the_id_that_serve_logs(sent, received):
    heads = []

    async def answer(reader, writer):
        heads.append(await reader.readuntil(b"\r\n\r\n"))
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        await writer.drain()
        writer.close()

    async def run():
        async with await asyncio.start_server(answer, "127.0.0.1", 0) as listening:
            port = listening.sockets[0].getsockname()[1]
            forwarder = HttpForwarder(f"http://127.0.0.1:{port}", lambda: "of serve")
            exchange = Exchange("GET", "/v2", headers=sent)
            await forwarder(exchange.scope, exchange.receive, exchange.send)
            await forwarder.close()

    asyncio.run(run())

    (head,) = heads
    assert [line for line in head.split(b"\r\n") if line.lower().startswith(b"x-request-id")] == [
        b"x-request-id: " + received
    ]


def test_a_client_that_leaves_cancels_its_request(server):
    body = infer("wait", n=("INT32", np.array([1])))
    exchange = Exchange("POST", "/v2/models/wait/infer", [body], [length(body)])

    async def leave():
        forwarder = HttpForwarder(f"http://127.0.0.1:{server.port}")
        task = asyncio.create_task(forwarder(exchange.scope, exchange.receive, exchange.send))
        assert await asyncio.to_thread(server.begun.wait, 20)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task
        assert await asyncio.to_thread(server.cancelled.wait, 20)
        await forwarder.close()

    asyncio.run(leave())

    assert exchange.sent == []
