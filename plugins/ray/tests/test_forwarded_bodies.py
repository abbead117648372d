"""Bodies of forwarded requests: how they are framed, and what a wrong or unfinished one does."""

import asyncio

import numpy as np
import pytest
from core_ray.forwarding import HttpForwarder

import core

from .exchange import Exchange, infer, pass_on, written


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
