"""Requests that come together: each is answered, whatever the one before or behind it is."""

import json

import pytest

GET = b"GET /v2/health/live HTTP/1.1\r\nHost: x\r\n\r\n"
TEXT = json.dumps(
    {"inputs": [{"name": "x", "datatype": "FP32", "shape": [1], "data": [1]}]}
).encode()
POST = b"POST /v2/models/echo/infer HTTP/1.1\r\nHost: x\r\nContent-Length: %d\r\n\r\n" % len(TEXT)
INFER = POST + TEXT
CHUNKED = (
    b"POST /v2/models/echo/infer HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    b"%x\r\n%b\r\n0\r\n\r\n" % (len(TEXT), TEXT)
)
END = b"GET /end HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n"


def upgrade(request, protocol=b"h2c"):
    """The same request, of a client that would like to speak something else."""
    fields = b"Host: x\r\nConnection: Upgrade, HTTP2-Settings\r\nHTTP2-Settings: AAMA\r\nUpgrade: "
    return request.replace(b"Host: x", fields + protocol, 1)


def statuses(server, data, cut=None):
    """Return the statuses of the responses to bytes sent in one part, or in two."""
    with server.open(data[:cut]) as own:
        if cut is not None:
            own.sendall(data[cut:])
        found = b""
        while piece := own.recv(65536):
            found += piece
    return [int(part[:3]) for part in found.split(b"HTTP/1.1 ")[1:]]


@pytest.mark.parametrize("cut", [None, 20, -40])
@pytest.mark.parametrize(
    "asked", [GET, INFER, CHUNKED], ids=["without a body", "with a body", "with chunks"]
)
@pytest.mark.parametrize("protocol", [b"h2c", b"websocket", b"other"])
def test_requests_after_an_upgrade_request_are_answered(server, asked, protocol, cut):
    data = upgrade(asked, protocol) + INFER + GET + END

    assert statuses(server, data, cut) == [200, 200, 200, 404]


def test_an_upgrade_whose_end_only_the_engine_knows_is_the_last_of_its_connection(server):
    odd = upgrade(INFER).replace(b"Host: x", b"X-Odd: \xc3\xbc\r\nHost: x")

    assert statuses(server, odd + INFER + GET) == [200]


@pytest.mark.parametrize(
    "bad",
    [b"BAD\x01 line\r\n\r\n", GET.replace(b"Host: x", b"Host : x"), GET.replace(b"1.1", b"9.9")],
    ids=["no HTTP", "a malformed header", "an unknown version"],
)
@pytest.mark.parametrize(
    "good",
    [[GET, INFER, GET], [CHUNKED, CHUNKED], [GET.replace(b"GET", b"OPTIONS"), INFER, CHUNKED]],
    ids=["known sizes", "chunks", "odd ones"],
)
def test_good_requests_are_answered_before_a_bad_one(server, good, bad):
    found = statuses(server, b"".join([*good, bad]))

    assert found[:-1] == [405 if b"OPTIONS" in each else 200 for each in good]
    assert 400 <= found[-1] < 600
