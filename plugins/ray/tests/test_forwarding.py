"""Requests of Serve's proxies reach the HTTP port of a server, and their responses come back unchanged."""

import asyncio
import json
import socket
import subprocess
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
            forwarder.close()

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
    assert [each.get("more_body") for each in found.sent] == [None, False]


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
    "sent, received", [([], "of serve"), ([(b"x-request-id", b"mine")], "mine")]
)
def test_a_request_has_the_id_that_serve_logs(sent, received):
    (_, *fields), _ = written(Exchange("GET", "/v2", headers=sent), lambda: "of serve")

    assert [each for each in fields if each.startswith("x-request-id")] == [
        f"x-request-id: {received}"
    ]


def written(exchange, request_id=str):
    """Return what the forwarder writes for a request: its head in lines, and its body."""
    found = []

    async def answer(reader, writer):
        head = await reader.readuntil(b"\r\n\r\n")
        body = b""
        if b"transfer-encoding: chunked" in head:
            body = await reader.readuntil(b"0\r\n\r\n")
        elif b"content-length: " in head:
            body = await reader.readexactly(int(head.partition(b"content-length: ")[2].split()[0]))
        found.append((head.decode().splitlines()[:-1], body))
        writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")
        await writer.drain()
        writer.close()

    async def run():
        async with await asyncio.start_server(answer, "127.0.0.1", 0) as listening:
            port = listening.sockets[0].getsockname()[1]
            forwarder = HttpForwarder(f"http://127.0.0.1:{port}", request_id)
            await forwarder(exchange.scope, exchange.receive, exchange.send)
            forwarder.close()

    asyncio.run(asyncio.wait_for(run(), 20))
    return found[0]


CHUNKED = [(b"transfer-encoding", b"chunked")]


@pytest.mark.parametrize(
    "method, body, headers, framing, sent",
    [
        ("GET", [], [], [], b""),
        ("POST", [], [], ["content-length: 0"], b""),
        ("DELETE", [], [(b"content-length", b"0")], ["content-length: 0"], b""),
        ("POST", [b"abc"], [(b"content-length", b"3")], ["content-length: 3"], b"abc"),
        ("POST", [b"a", b"", b"bc"], [(b"content-length", b"3")], ["content-length: 3"], b"abc"),
        ("POST", [b"abc"], CHUNKED, ["content-length: 3"], b"abc"),
        (
            "POST",
            [b"a", b"", b"0123456789abcdef", b""],
            CHUNKED,
            ["transfer-encoding: chunked"],
            b"1\r\na\r\n10\r\n0123456789abcdef\r\n0\r\n\r\n",
        ),
    ],
)
def test_a_request_has_the_framing_of_what_is_written(method, body, headers, framing, sent):
    (first, *fields), found = written(Exchange(method, "/v2", body, headers))

    assert first == f"{method} /v2 HTTP/1.1"
    assert fields == ["host: example.com", *framing]
    assert found == sent


def test_both_forms_of_a_length_do_not_reach_the_server():
    headers = [(b"content-length", b"7"), *CHUNKED]

    (_, *fields), found = written(Exchange("POST", "/v2", [b"abc"], headers))

    assert fields == ["host: example.com", "content-length: 3"]
    assert found == b"abc"


def test_a_request_without_a_host_names_the_port():
    exchange = Exchange("GET", "/v2")
    exchange.scope["headers"] = []

    (_, host), _ = written(exchange)

    assert host.startswith("host: 127.0.0.1:")


@pytest.mark.parametrize("value", [b"a\r\nx-role: admin", b"a\nb", b"a\rb"])
def test_a_line_end_in_a_header_is_refused(server, value):
    with pytest.raises(ValueError, match="end of a line"):
        pass_on(server, Exchange("GET", "/v2", headers=[(b"x-a", value)]))


@pytest.mark.parametrize(
    "pieces, reason",
    [([b"ab", b"c"], "left before the end"), ([b"ab", b"cdefg"], "more than the length")],
)
def test_a_body_that_is_not_as_long_as_declared_is_an_error(server, pieces, reason):
    headers = [(b"content-length", b"6")]

    with pytest.raises(ConnectionError, match=f"the client has .*{reason}"):
        pass_on(server, Exchange("POST", "/v2/models/double/infer", pieces, headers))


def test_a_client_that_leaves_within_its_body_is_an_error(server):
    exchange = Exchange(
        "POST", "/v2/models/double/infer", [b"ab", b"cd"], [(b"content-length", b"6")]
    )
    exchange._in[1] = {"type": "http.disconnect"}

    with pytest.raises(ConnectionError, match="the client has left before the end"):
        pass_on(server, exchange)


def test_an_error_of_serve_while_a_body_is_read_is_raised(server):
    exchange = Exchange("POST", "/v2/models/double/infer", [b"ab", b"cd"], CHUNKED)

    async def receive():
        if len(exchange._in) == 1:
            raise RuntimeError("the queue of Serve is closed")
        return exchange._in.pop(0)

    exchange.receive = receive
    with pytest.raises(RuntimeError, match="queue of Serve"):
        pass_on(server, exchange)


def test_a_refusal_before_the_end_of_a_body_is_passed_on():
    with core.Server(http_max_body_size=1000) as limited:
        limited.port = limited.serve(http_port=0)["http"]
        exchange = Exchange("POST", "/v2/models/x/infer", [bytes(1000)] * 3, CHUNKED)

        async def receive():
            if exchange._in:
                return exchange._in.pop(0)
            await asyncio.sleep(3600)

        exchange._in[-1]["more_body"] = True
        exchange.receive = receive
        pass_on(limited, exchange)

    assert exchange.status in (400, 413)
    assert "1000" in exchange.json["error"]


def test_a_connection_with_a_part_of_a_body_is_not_used_again():
    opened = []

    async def answer(reader, writer):
        opened.append(writer)
        while await reader.readuntil(b"\r\n\r\n"):
            writer.write(b"HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n")

    async def run():
        async with await asyncio.start_server(answer, "127.0.0.1", 0) as listening:
            port = listening.sockets[0].getsockname()[1]
            forwarder = HttpForwarder(f"http://127.0.0.1:{port}")
            cut = Exchange("POST", "/v2", [b"ab", b"cdef"], [(b"content-length", b"6")])
            first = [cut._in[0]]

            async def receive():
                return first.pop() if first else await asyncio.Event().wait()

            await forwarder(cut.scope, receive, cut.send)
            whole = Exchange("GET", "/v2")
            await forwarder(whole.scope, whole.receive, whole.send)
            forwarder.close()
            for each in opened:
                each.close()
            return cut.status, whole.status

    assert asyncio.run(asyncio.wait_for(run(), 20)) == (200, 200)
    assert len(opened) == 2


def test_requests_of_one_client_after_the_other_share_a_connection(server):
    async def run():
        forwarder = HttpForwarder(f"http://127.0.0.1:{server.port}")
        opened = []
        take = forwarder._connections.take

        async def remember():
            opened.append(await take())
            return opened[-1]

        forwarder._connections.take = remember
        for path in ("/v2", "/v2/models/double", "/v2/models/unknown"):
            exchange = Exchange("GET", path)
            await forwarder(exchange.scope, exchange.receive, exchange.send)
        forwarder.close()
        return opened

    first, *others = asyncio.run(run())

    assert all(each is first for each in others)


def test_a_port_with_tls_is_reached(tmp_path):
    certificate, key = tmp_path / "own.crt", tmp_path / "own.key"
    made = ["req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2", "-subj", "/CN=elsewhere"]
    try:
        subprocess.run(
            ["openssl", *made, "-keyout", key, "-out", certificate], check=True, capture_output=True
        )
    except FileNotFoundError:
        pytest.skip("certificates are made by the program openssl")
    secure = {"http_use_ssl": True, "http_server_cert": certificate, "http_server_key": key}
    with core.Server(**secure) as server:
        port = server.serve(http_port=0)["http"]
        found = pass_on_to(f"https://127.0.0.1:{port}", Exchange("GET", "/v2/health/live"))

    assert found.status == 200


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
        forwarder.close()

    asyncio.run(leave())

    assert exchange.sent == []
