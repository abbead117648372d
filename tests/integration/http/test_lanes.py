"""The fast path and aiohttp on one connection: the path of each request, and equal responses."""

import asyncio
import json
import re

import pytest

from frontends.http.frontend import HttpFrontend

INFER = "/v2/models/echo/infer"
HEALTH = b"GET /v2/health/live HTTP/1.1\r\nHost: x\r\n\r\n"


def head(*fields, first=f"POST {INFER} HTTP/1.1", host="Host: x"):
    """The bytes of a head, exactly."""
    return "\r\n".join([first, *filter(None, [host]), *fields, "", ""]).encode("latin-1")


BODY = json.dumps(
    {"inputs": [{"name": "x", "datatype": "FP32", "shape": [2], "data": [1, 2]}]}
).encode()
HALF = (
    b'{"inputs":[{"name":"x","datatype":"FP16","shape":[2],"parameters":{"binary_data_size":4}}]}'
)
JSON_OF_NONE = "Inference-Header-Content-Length: 0"  # the body is the only tensor
LENGTH = f"Content-Length: {len(BODY)}"


@pytest.fixture(params=[False, True], ids=["plain", "tls"])
def over_tls(request):
    """Run all tests here over TLS, too."""
    return request.param


class Count:
    """Counts the requests to aiohttp."""

    def __init__(self, monkeypatch):
        self.asked = []
        inner = HttpFrontend._answer

        async def answer(frontend, request, share):
            self.asked.append((request.method, request.raw_path))
            return await inner(frontend, request, share)

        monkeypatch.setattr(HttpFrontend, "_answer", answer)


@pytest.fixture
def by_aiohttp(monkeypatch):
    """Return method and path of every request to aiohttp."""
    return Count(monkeypatch).asked


def tls_of(options):
    names = ("http_use_ssl", "http_server_cert", "http_server_key")
    return {name: options.value(name) for name in names}


class Other:
    """The same server with the other --http-lane."""

    def __init__(self, server, lane):
        self.server = server
        self.options = type(server.options).defaults(
            http_address="127.0.0.1", http_port=0, http_lane=lane, **tls_of(server.options)
        )

    def __getattr__(self, name):
        return getattr(self.server, name)


@pytest.fixture
async def ports(open_with):
    """Return a port with the fast path, one of the same server without it, and the trusted certificates."""
    async with open_with(lane="auto") as site:
        other = HttpFrontend(Other(site.server, "aiohttp"))
        await other.start()
        yield (site.frontend.port, site.tls), (other.port, site.tls)
        await other.stop(1)


END = b"GET /end HTTP/1.1\r\nHost: x\r\n\r\n"


async def told(port, *pieces):
    """The heads, but for Date, and bodies of all answers up to that to END or the last before a close."""
    number, tls = port
    reader, writer = await asyncio.open_connection("127.0.0.1", number, ssl=tls)
    once = b"".join(pieces).split(b"\r\n")[0].endswith(b"HTTP/1.0")  # nothing comes after it
    for piece in (*pieces, *([] if once else [END])):
        writer.write(piece)
        await asyncio.sleep(0)
    answers = []
    while not answers or (
        not once
        and b"Connection: close" not in answers[-1][0]
        and b"Not Found" not in answers[-1][1]
    ):
        found = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n"), 3)
        length = re.search(rb"Content-Length: (\d+)", found)
        body = await asyncio.wait_for(reader.readexactly(int(length[1]) if length else 0), 10)
        answers.append((re.sub(rb"Date: [^\r]*", b"Date:", found), body))
    if once:
        assert await asyncio.wait_for(reader.read(), 10) == b""
    writer.close()
    return answers


ODD = {
    "two lengths": head(LENGTH, LENGTH) + BODY,
    "two other lengths": head(LENGTH, "Content-Length: 3") + BODY,
    "length with a sign": head(f"Content-Length: +{len(BODY)}") + BODY,
    "length with a space": head("Content-Length: 1 2") + BODY,
    "length with zeros": head(f"Content-Length: 000{len(BODY)}") + BODY,
    "length in hexadecimal": head(f"Content-Length: {len(BODY):#x}") + BODY,
    "length beyond everything": head("Content-Length: 99999999999999999999"),
    "length beyond the limit": head("Content-Length: 9999999999"),
    "length that is negative": head("Content-Length: -1"),
    "length that is empty": head("Content-Length:") + BODY,
    "length after blanks": head(f"Content-Length: \t {len(BODY)} \t") + BODY,
    "length in capitals": head(f"CONTENT-LENGTH: {len(BODY)}") + BODY,
    "no length": head(),
    "chunks": head("Transfer-Encoding: chunked") + b"%x\r\n%s\r\n0\r\n\r\n" % (len(BODY), BODY),
    "chunks and a length": head("Transfer-Encoding: chunked", LENGTH) + BODY,
    "a coding that is unknown": head("Transfer-Encoding: gzip", LENGTH) + BODY,
    "a folded field": head(LENGTH, "X-A: b\r\n c") + BODY,
    "a bare line feed": head(LENGTH).replace(b"\r\n", b"\n") + BODY,
    "a bare carriage return": head(LENGTH, "X-A: b\rc") + BODY,
    "a whole URL": head(LENGTH, first=f"POST http://x{INFER} HTTP/1.1") + BODY,
    "a name with a percent sign": head(LENGTH, first="POST /v2/models/a%20b/infer HTTP/1.1") + BODY,
    "a name with a slash": head(LENGTH, first="POST /v2/models/a/b/infer HTTP/1.1") + BODY,
    "no name": head(LENGTH, first="POST /v2/models//infer HTTP/1.1") + BODY,
    "two dots": head(LENGTH, first="POST /v2/models/../infer HTTP/1.1") + BODY,
    "a query": head(LENGTH, first=f"POST {INFER}?a=b HTTP/1.1") + BODY,
    "a fragment": head(LENGTH, first=f"POST {INFER}#a HTTP/1.1") + BODY,
    "a slash at the end": head(LENGTH, first=f"POST {INFER}/ HTTP/1.1") + BODY,
    "a version": head(LENGTH, first="POST /v2/models/echo/versions/1/infer HTTP/1.1") + BODY,
    "a version that is not there": head(
        LENGTH, first="POST /v2/models/echo/versions/7/infer HTTP/1.1"
    )
    + BODY,
    "version zero": head(LENGTH, first="POST /v2/models/echo/versions/0/infer HTTP/1.1") + BODY,
    "a version of many digits": head(
        LENGTH, first=f"POST /v2/models/echo/versions/{'9' * 20}/infer HTTP/1.1"
    )
    + BODY,
    "a version in words": head(LENGTH, first="POST /v2/models/echo/versions/a/infer HTTP/1.1")
    + BODY,
    "a method in small letters": head(LENGTH, first=f"post {INFER} HTTP/1.1") + BODY,
    "another method": head(first=f"GET {INFER} HTTP/1.1"),
    "two blanks": head(LENGTH, first=f"POST  {INFER} HTTP/1.1") + BODY,
    "HTTP/1.0": head(LENGTH, first=f"POST {INFER} HTTP/1.0") + BODY,
    "HTTP/1.2": head(LENGTH, first=f"POST {INFER} HTTP/1.2") + BODY,
    "no version": head(LENGTH, first=f"POST {INFER}") + BODY,
    "the beginning of HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "the beginning of TLS": bytes.fromhex("16030100c4010000c00303") + bytes(32),
    "no HTTP at all": b"hello\r\n\r\n",
    "an empty line before": b"\r\n" + head(LENGTH) + BODY,
    "no host": head(LENGTH, host="") + BODY,
    "two hosts": head(LENGTH, "Host: y") + BODY,
    "an empty host": head(LENGTH, host="Host:") + BODY,
    "a zero byte in a field": head(LENGTH, "X-A: b\0c") + BODY,
    "a zero byte in the path": head(LENGTH, first="POST /v2/models/a\0/infer HTTP/1.1") + BODY,
    "an octet beyond ASCII": head(LENGTH, "X-A: \xe4") + BODY,
    "a field without a colon": head(LENGTH, "X-A") + BODY,
    "a field without a name": head(LENGTH, ": b") + BODY,
    "a blank before a colon": head("Content-Length : 5") + BODY,
    "an underscore in a name": head(LENGTH, "X_A: b") + BODY,
    "an odd name": head(LENGTH, "X!A: b") + BODY,
    "a long head": head(LENGTH, f"X-A: {'a' * 8000}") + BODY,
    "a head that is too long": head(LENGTH, f"X-A: {'a' * 20000}") + BODY,
    "many fields": head(LENGTH, *(f"X-{n}: a" for n in range(100))) + BODY,
    "too many fields": head(LENGTH, *(f"X-{n}: a" for n in range(200))) + BODY,
    "two content types": head(LENGTH, "Content-Type: a/b", "Content-Type: c/d") + BODY,
    "two agents": head(LENGTH, "User-Agent: a", "User-Agent: b") + BODY,
    "an upgrade": head(LENGTH, "Connection: Upgrade", "Upgrade: websocket") + BODY,
    "the end of the connection": head(LENGTH, "Connection: close") + BODY,
    "the connection kept": head(LENGTH, "Connection: Keep-Alive") + BODY,
    "two connections": head(LENGTH, "Connection: keep-alive", "Connection: close") + BODY,
    "a connection of a proxy": head(LENGTH, "Proxy-Connection: close") + BODY,
    "a list of connection options": head(LENGTH, "Connection: keep-alive, x-a") + BODY,
    "an answer that may be packed": head(LENGTH, "Accept-Encoding: br, gzip") + BODY,
    "an answer that may not be packed": head(LENGTH, "Accept-Encoding: br, identity") + BODY,
    "a body that is said to be packed": head(LENGTH, "Content-Encoding: gzip") + BODY,
    "a body that is not packed": head(LENGTH, "Content-Encoding: identity") + BODY,
    "a packing that is unknown": head(LENGTH, "Content-Encoding: br") + BODY,
    "an empty body": head("Content-Length: 0"),
    "an empty body without JSON": head("Content-Length: 0", "Inference-Header-Content-Length: 0"),
    "no JSON": head("Content-Length: 8", "Inference-Header-Content-Length: 0") + bytes(8),
    "JSON of a size": head(LENGTH, f"Inference-Header-Content-Length: {len(BODY)}") + BODY,
    "JSON in small letters": head(LENGTH, f"inference-header-content-length: {len(BODY)}") + BODY,
    "JSON longer than the body": head(LENGTH, "Inference-Header-Content-Length: 999") + BODY,
    "JSON of a negative size": head(LENGTH, "Inference-Header-Content-Length: -1") + BODY,
    "JSON of no size": head(LENGTH, "Inference-Header-Content-Length: many") + BODY,
    "JSON of an empty size": head(LENGTH, "Inference-Header-Content-Length:") + BODY,
    "JSON of two sizes": head(
        LENGTH, "Inference-Header-Content-Length: 3", "Inference-Header-Content-Length: 4"
    )
    + BODY,
    "no JSON at all": head("Content-Length: 3") + b"abc",
    "an unknown model": head(LENGTH, first="POST /v2/models/absent/infer HTTP/1.1") + BODY,
    "a decoupled model": head(LENGTH, first="POST /v2/models/stream/infer HTTP/1.1") + BODY,
    "a model that fails": head(LENGTH, first="POST /v2/models/broken/infer HTTP/1.1") + BODY,
    "an output that JSON cannot have": head(
        f"Content-Length: {len(HALF) + 4}",
        f"Inference-Header-Content-Length: {len(HALF)}",
        first="POST /v2/models/half/infer HTTP/1.1",
    )
    + HALF
    + bytes(4),
}


@pytest.mark.parametrize("lane", ["auto"])
@pytest.mark.parametrize("what", ODD)
async def test_both_paths_answer_equally(ports, what):
    fast, plain = [await told(port, ODD[what]) for port in ports]

    assert fast == plain


@pytest.mark.parametrize("lane", ["auto"])
@pytest.mark.parametrize("what", [what for what in ODD if len(ODD[what]) < 1000])
async def test_nor_if_its_bytes_come_one_by_one(ports, what):
    data = ODD[what]
    expected = await told(ports[1], data)
    if b"Connection: close" in expected[-1][0] or b"Not Found" in expected[0][1]:
        return  # the server may close while there is more to send

    assert await told(ports[0], *(data[at : at + 1] for at in range(len(data)))) == expected


@pytest.mark.parametrize("lane", ["auto"])
@pytest.mark.parametrize("first", [f"POST {INFER}", "POST /v2/models/echo", "GET /v2"])
async def test_a_request_without_a_version_is_refused_in_http(ports, first):
    for port in ports:
        (answer, *_), *_ = await told(port, head(LENGTH, first=first) + BODY)
        assert answer.startswith(b"HTTP/1.1 400 ")


COMMON = {
    "plain": head(LENGTH),
    "with a version": head(LENGTH, first="POST /v2/models/echo/versions/1/infer HTTP/1.1"),
    "as clients write it": head(
        "User-Agent: a/1.0", "Accept: */*", "Content-Type: application/json", LENGTH
    ),
    "as proxies write it": head(
        LENGTH, "Connection: keep-alive", "X-Request-Id: 1", "traceparent: 00-1-2-01"
    ),
    "with the size of JSON": head(LENGTH, f"Inference-Header-Content-Length: {len(BODY)}"),
    "without packing": head(LENGTH, "Accept-Encoding: identity"),
    "of a model that is not there": head(LENGTH, first="POST /v2/models/absent/infer HTTP/1.1"),
}
LEFT = {
    "packed answers": head(LENGTH, "Accept-Encoding: gzip, deflate"),
    "a deadline": head(LENGTH, "grpc-timeout: 10S"),
    "the end of a connection": head(LENGTH, "Connection: close"),
    "percent signs": head(LENGTH, first="POST /v2/models/a%20b/infer HTTP/1.1"),
    "other paths": head(first="GET /v2 HTTP/1.1"),
    "too much": head("Content-Length: 99999999"),
}


@pytest.mark.parametrize("lane", ["auto"])
@pytest.mark.parametrize("what", COMMON)
async def test_common_requests_go_past_aiohttp(site, by_aiohttp, what):
    connection = await site.connect()
    connection.send(COMMON[what] + BODY)

    assert (await connection.reply()).status in (200, 400, 404)
    assert by_aiohttp == []


@pytest.mark.parametrize("lane", ["auto"])
@pytest.mark.parametrize("what", LEFT)
async def test_all_else_goes_to_aiohttp(site, by_aiohttp, what):
    connection = await site.connect()
    connection.send(LEFT[what] + BODY)

    await connection.reply()
    assert len(by_aiohttp) == 1


@pytest.mark.parametrize("lane", ["auto"])
@pytest.mark.parametrize(
    "options",
    [
        {"http_lane": "aiohttp"},
        {"http_header_forward_pattern": "x-.*"},
        {"http_restricted_api": {"inference": ("key", "secret")}},
    ],
    ids=str,
)
async def test_some_options_leave_all_to_aiohttp(open_with, by_aiohttp, document, options):
    async with open_with(**options) as site:
        await site.infer("echo", document(1))
    assert len(by_aiohttp) == 1


@pytest.mark.parametrize("lane", ["auto"])
async def test_requests_that_may_be_traced_go_to_aiohttp(open_with, by_aiohttp, document, tmp_path):
    config = {"": [("level", "TIMESTAMPS"), ("rate", "1")]}
    config["triton"] = [("file", str(tmp_path / "trace"))]
    async with open_with(trace_config=config) as site:
        connection = await site.connect()
        await connection.ask("POST", INFER, document(1))
        assert len(by_aiohttp) == 1

        await site.server.control.settings.change_trace_settings({"trace_level": ["OFF"]})
        await site.infer("echo", document(1))
        assert len(by_aiohttp) == 1


@pytest.mark.parametrize("lane", ["auto"])
async def test_the_fast_path_is_used_again_when_aiohttp_has_answered(site, by_aiohttp, document):
    connection = await site.connect()
    gzip = {"Accept-Encoding": "gzip"}
    chunks = head("Transfer-Encoding: chunked") + b"%x\r\n%s\r\n0\r\n\r\n" % (len(BODY), BODY)
    for _ in range(2):
        await connection.ask("GET", "/v2/health/live")
        await connection.ask("POST", INFER, document(1), gzip)
        connection.send(chunks)
        await connection.reply()
        await asyncio.sleep(0)  # aiohttp has written, but not yet come to rest
        by_aiohttp.clear()
        await connection.ask("POST", INFER, document(1))
        await connection.ask("POST", INFER, document(1))
        assert len(by_aiohttp) <= 1
