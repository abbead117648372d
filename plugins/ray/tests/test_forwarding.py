"""Requests of Serve's proxies reach the HTTP port of a server, and their responses come back unchanged."""

import asyncio
import json
import socket
import subprocess

import numpy as np
import pytest
from core_ray.forwarding import HttpForwarder
from core_ray.ports import open_port, reached_at

import core

from .exchange import Exchange, infer, length, pass_on, pass_on_to, written


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


def test_a_request_without_a_host_names_the_port():
    exchange = Exchange("GET", "/v2")
    exchange.scope["headers"] = []

    (_, host), _ = written(exchange)

    assert host.startswith("host: 127.0.0.1:")


@pytest.mark.parametrize("value", [b"a\r\nx-role: admin", b"a\nb", b"a\rb"])
def test_a_line_end_in_a_header_is_refused(server, value):
    with pytest.raises(ValueError, match="end of a line"):
        pass_on(server, Exchange("GET", "/v2", headers=[(b"x-a", value)]))


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
