"""Bytes on the wire: framing, limits, pipelining, disconnects and invalid HTTP."""

import asyncio
import shutil
import socket
import struct

import numpy as np
import pytest

INFER = "/v2/models/echo/infer"


@pytest.fixture(params=[False, True], ids=["plain", "tls"])
def over_tls(request):
    """Run all tests here over TLS, too."""
    return request.param


def chunked(*parts, path=INFER, end=b"0\r\n\r\n"):
    head = f"POST {path} HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n".encode()
    return head + b"".join(b"%x\r\n%s\r\n" % (len(part), part) for part in parts) + end


def data_of(reply):
    assert reply.status == 200, reply.body
    return reply.json["outputs"][0]["data"]


async def test_a_connection_is_kept_for_the_next_request(site, document):
    connection = await site.connect()
    for number in range(5):
        assert data_of(await connection.ask("POST", INFER, document(number))) == [number]
        assert (await connection.ask("GET", "/nothing")).status == 404


async def test_a_client_may_end_its_connection(site, message):
    connection = await site.connect()
    connection.send(message("GET", "/v2/health/live", headers={"Connection": "close"}))
    reply = await connection.reply()
    assert reply.headers["connection"] == "close"
    assert await connection.rest() == b""


async def test_http_1_0_is_answered_and_ended(site):
    connection = await site.connect()
    connection.send(b"GET /v2/health/live HTTP/1.0\r\n\r\n")
    assert (await connection.reply()).status == 200
    assert await connection.rest() == b""


async def test_a_head_request_gets_405_without_a_body(site):
    connection = await site.connect()
    reply = await connection.ask("HEAD", "/v2")
    assert (reply.status, reply.headers["content-length"]) == (405, "30")
    assert (await connection.ask("GET", "/v2/health/live")).status == 200


async def test_a_path_may_be_a_whole_url(site):
    reply = await site.ask("GET", "http://x:1/v2/health/live?a#b")
    assert reply.status == 200


async def test_a_path_that_is_no_utf8_is_not_found(site):
    connection = await site.connect()
    connection.send(b"GET /v2/models/\xff\xfe HTTP/1.1\r\nHost: x\r\n\r\n")
    reply = await connection.reply()
    assert reply.status in (400, 404) and "error" in reply.json


async def test_pipelined_requests_are_answered_in_their_order(site, document, message):
    connection = await site.connect()
    connection.send(
        b"".join(message("POST", INFER, document(number)) for number in range(20))
        + message("GET", "/v2/health/live")
    )
    for number in range(20):
        assert data_of(await connection.reply()) == [number]
    assert (await connection.reply()).body == b""


@pytest.mark.parametrize("size", [1, 3, 50])
async def test_a_request_may_come_in_pieces(site, document, message, size):
    connection = await site.connect()
    data = message("POST", INFER, document(1, 2))
    for at in range(0, len(data), size):
        connection.send(data[at : at + size])
        await asyncio.sleep(0)
    assert data_of(await connection.reply()) == [1, 2]


async def test_large_tensors_go_in_and_out(site):
    values = np.arange(3_000_000, dtype="<f4")
    head = (
        b'{"parameters":{"binary_data_output":true},"inputs":[{"name":"x","datatype":"FP32",'
        b'"shape":[3000000],"parameters":{"binary_data_size":12000000}}]}'
    )
    reply = await site.ask(
        "POST",
        INFER,
        head + values.tobytes(),
        {"Inference-Header-Content-Length": str(len(head))},
    )
    size = int(reply.headers["inference-header-content-length"])
    assert reply.body[size:] == values.tobytes()


# Expect, as curl sends it -------------------------------------------------------------------


async def test_a_client_that_expects_100_continue_gets_it(site, document, message):
    connection = await site.connect()
    data = message("POST", INFER, document(1), {"Expect": "100-continue"})
    head, body = data.split(b"\r\n\r\n", 1)
    connection.send(head + b"\r\n\r\n")

    first = await connection.reply()
    connection.send(body)

    assert (
        (first.status, first.headers) == (100, {}) if first.headers == {} else first.status == 100
    )
    assert data_of(await connection.reply()) == [1]
    assert data_of(await connection.ask("POST", INFER, document(2))) == [2]


async def test_a_client_that_expects_100_continue_is_refused_before_it_sends(open_with, message):
    async with open_with(http_max_input_size=100) as site:
        for path, status in ((INFER, 400), ("/nothing", 404)):
            connection = await site.connect()
            connection.send(message("POST", path, bytes(101), {"Expect": "100-continue"})[:-101])
            reply = await connection.reply()
            assert reply.status == status
            assert reply.headers["connection"] == "close"


@pytest.mark.skipif(shutil.which("curl") is None, reason="there is no curl")
async def test_curl_sends_raw_bytes_and_gets_them_back(site, tmp_path, certificates):
    values = np.arange(300_000, dtype="<f4").tobytes()  # large enough for curl to ask first
    (tmp_path / "body").write_bytes(values)
    process = await asyncio.create_subprocess_exec(
        "curl",
        "-sS",
        "-D",
        tmp_path / "head",
        "--cacert",
        certificates.root_crt,
        "-H",
        "Content-Type: application/octet-stream",
        "-H",
        "Inference-Header-Content-Length: 0",
        "-H",
        "Expect: 100-continue",
        "--data-binary",
        f"@{tmp_path / 'body'}",
        f"{'https' if site.tls else 'http'}://127.0.0.1:{site.frontend.port}{INFER}",
        stdout=asyncio.subprocess.PIPE,
    )
    answer, _ = await process.communicate()
    assert answer.endswith(values)
    assert b"HTTP/1.1 100 Continue" in (tmp_path / "head").read_bytes()


# Chunks -------------------------------------------------------------------------------------


async def test_a_body_may_come_in_chunks(site):
    connection = await site.connect()
    body = b'{"inputs":[{"name":"x","datatype":"FP32","shape":[1],"data":[5]}]}'
    for parts in ([body], [body[:1], body[1:40], body[40:]], [bytes([byte]) for byte in body]):
        connection.send(chunked(*parts))
        assert data_of(await connection.reply()) == [5]


@pytest.mark.parametrize("count,right", [(65_536, True), (65_537, False)])
async def test_a_body_has_at_most_65536_chunks(site, count, right):
    connection = await site.connect()
    body = b'{"inputs":[{"name":"x","datatype":"FP32","shape":[1],"data":[5]}]}'
    spaces = [b" "] * (count - 1)
    connection.send(chunked(*spaces, body))

    reply = await connection.reply(timeout_s=60)

    if right:
        assert data_of(reply) == [5]
    else:
        assert reply.status == 400
        assert reply.json["error"] == (
            "Chunked request body exceeds maximum of 65536 non-empty chunks. "
            "Send fewer or larger HTTP chunks."
        )


@pytest.mark.parametrize("chunk", [b"zz\r\nabc\r\n", b"-5\r\nabc\r\n", b"5\r\nabcdefgh\r\n"])
async def test_malformed_chunks_are_refused(site, chunk):
    connection = await site.connect()
    connection.send(chunked(end=chunk + b"\r\n"))
    reply = await connection.reply()
    assert reply.status == 400 and "error" in reply.json
    await connection.rest()


async def test_chunks_that_grow_beyond_the_limit_are_refused(open_with):
    async with open_with(http_max_input_size=10_000) as site:
        connection = await site.connect()
        connection.send(chunked(*[b" " * 1000] * 11))
        reply = await connection.reply()
        assert "exceeds the maximum allowed input size of 10000 bytes" in reply.json["error"]


# Limits -----------------------------------------------------------------------------------


async def test_a_body_that_is_announced_too_large_is_refused_at_once(open_with, message):
    async with open_with(http_max_input_size=100) as site:
        for headers, announced in (
            ({}, 101),
            ({"Inference-Header-Content-Length": "0"}, 101),
            ({"Content-Encoding": "gzip"}, 5000),
            ({"Inference-Header-Content-Length": "50"}, 2**31),
        ):
            connection = await site.connect()
            connection.send(message("POST", INFER, None, {**headers, "Content-Length": announced}))
            reply = await connection.reply()
            assert (reply.status, reply.headers["connection"]) == (400, "close")
            assert "exceeds the maximum" in reply.json["error"]


async def test_binary_tensors_do_not_count_for_the_limit_of_json(open_with):
    async with open_with(http_max_input_size=300) as site:
        head = (
            b'{"inputs":[{"name":"x","datatype":"FP32","shape":[1000],"parameters":'
            b'{"binary_data_size":4000}}],"outputs":[{"name":"y","parameters":{"binary_data":true}}]}'
        )
        headers = {"Inference-Header-Content-Length": str(len(head))}
        reply = await site.ask("POST", INFER, head + bytes(4000), headers)
        assert reply.status == 200


async def test_a_client_that_is_still_sending_gets_an_early_refusal(open_with, message):
    async with open_with(http_max_input_size=100) as site:
        connection = await site.connect()
        connection.send(message("POST", INFER, bytes(5_000_000)))
        assert (await connection.reply()).status == 400
        assert await connection.rest() == b""


@pytest.mark.parametrize(
    "data",
    [
        b"NONSENSE\r\n\r\n",
        b"G\xffT /v2 HTTP/1.1\r\nHost: x\r\n\r\n",
        b"GET /v2 HTTP/1.1\r\nno colon\r\n\r\n",
        b"GET /v2 HTTP/9.9\r\n\r\n",
        b"GET /" + b"a" * 100_000 + b" HTTP/1.1\r\n\r\n",
        b"GET /v2 HTTP/1.1\r\nX: " + b"a" * 200_000 + b"\r\n\r\n",
        b"GET /v2 HTTP/1.1\r\n" + b"".join(b"X-%d: y\r\n" % i for i in range(2000)) + b"\r\n",
        b"POST /v2 HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        b"POST /v2 HTTP/1.1\r\nContent-Length: 99999999999999999999\r\n\r\n",
        b"POST /v2 HTTP/1.1\r\nContent-Length: 5\r\nContent-Length: 6\r\n\r\nabcdef",
        b"POST /v2 HTTP/1.1\r\nContent-Length: 5\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
    ],
)
async def test_invalid_http_is_refused_in_the_form_of_errors(site, data):
    connection = await site.connect()
    connection.send(data)
    reply = await connection.reply()
    assert (reply.version, reply.status) == ("HTTP/1.1", 400)
    assert list(reply.json) == ["error"]
    await connection.rest()
    assert (await site.ask("GET", "/v2/health/live")).status == 200


UPGRADES = {
    "WebSocket": {"Connection": "Upgrade", "Upgrade": "websocket", "Sec-WebSocket-Version": "13"},
    "HTTP/2": {
        "Connection": "Upgrade, HTTP2-Settings",
        "Upgrade": "h2c",
        "HTTP2-Settings": "AAMAAABkAARAAAAA",
    },
}


@pytest.mark.parametrize("headers", UPGRADES.values(), ids=UPGRADES)
async def test_an_upgrade_is_not_taken(site, headers):
    reply = await site.ask("GET", "/v2/health/live", headers=headers)
    assert reply.status == 200


async def test_clients_that_would_like_http2_are_answered_with_http1(site, document):
    connection = await site.connect()
    for value in range(3):  # as the client of Java's own library does with each request
        asked = document(value)
        reply = await connection.ask("POST", "/v2/models/echo/infer", asked, UPGRADES["HTTP/2"])
        assert reply.json["outputs"][0]["data"] == [value]


# Clients that go ------------------------------------------------------------------------------


async def test_a_client_that_goes_cancels_its_request(site, document, message):
    connection = await site.connect()
    connection.send(message("POST", "/v2/models/gated/infer", document(1)))
    await asyncio.wait_for(site.backend.running.wait(), 10)

    connection.cut()

    (request,) = site.backend.requests
    cancelled = asyncio.Event()
    request.on_cancel(cancelled.set)
    await asyncio.wait_for(cancelled.wait(), 10)


async def test_a_client_that_disconnects_in_the_middle_of_its_body_is_harmless(
    site, document, message
):
    ends = [lambda c: c.cut(), lambda c: c.writer.close()]
    if not site.tls:  # which has no end of one direction
        ends.append(lambda c: c.writer.write_eof())
    for end in ends:
        connection = await site.connect()
        connection.send(message("POST", INFER, document(1))[:-10])
        await asyncio.sleep(0.01)
        end(connection)
    assert data_of(await site.infer("echo", document(1))) == [1]


async def test_clients_that_disconnect_at_once_are_harmless(site, document, message):
    for _ in range(20):
        _, writer = await asyncio.open_connection("127.0.0.1", site.frontend.port, ssl=site.tls)
        writer.write(message("POST", INFER, document(1)))
        writer.get_extra_info("socket").setsockopt(
            socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0)
        )
        writer.transport.abort()
    assert data_of(await site.infer("echo", document(1))) == [1]


async def test_silent_connections_do_not_stop_others(site, document):
    for _ in range(50):
        await site.connect()
    assert data_of(await site.infer("echo", document(1))) == [1]
