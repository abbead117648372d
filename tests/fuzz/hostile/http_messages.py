"""Hostile HTTP: requests with valid framing and invalid content, and bytes that are no HTTP."""

import gzip
import json
import struct
import zlib
from functools import cache

import numpy as np

from .mutate import TEXTS, as_json, damaged, spoiled

GOOD = {"inputs": [{"name": "INPUT0", "datatype": "FP32", "shape": [1], "data": [21]}]}
GOOD_BODY = json.dumps(GOOD).encode()
_BYTES = struct.pack("<I", 2) + b"ok"
_DOCUMENTS = {
    "/v2/models/plain/infer": [
        GOOD,
        GOOD | {"id": "x", "outputs": [{"name": "OUTPUT0", "parameters": {"classification": 1}}]},
        GOOD
        | {"parameters": {"sequence_id": 7, "sequence_start": True, "priority": 1, "timeout": 9}},
    ],
    "/v2/models/add_sub/infer": [
        {
            "inputs": [
                {"name": name, "datatype": "FP32", "shape": [4], "data": [1, 2, 3, 4]}
                for name in ("INPUT0", "INPUT1")
            ]
        }
    ],
    "/v2/models/plain/generate": [
        {"INPUT0": 21, "id": "x"},
        {"INPUT0": [21], "parameters": {"a": 1}},
    ],
    "/v2/models/plain/generate_stream": [{"INPUT0": 21}],
    "/v2/models/params_echo/infer": [GOOD | {"parameters": {"a": 1, "b": "c", "d": True}}],
    "/v2/repository/index": [{"ready": True}],
    "/v2/repository/models/absent/load": [
        {"parameters": {"config": "{}"}},
        {"parameters": {"config": '{"backend":"python"}', "file:1/model.py": "cGFzcw=="}},
    ],
    "/v2/repository/models/absent/unload": [{"parameters": {"unload_dependents": True}}],
    "/v2/systemsharedmemory/region/r/register": [{"key": "/absent", "offset": 0, "byte_size": 64}],
    "/v2/cudasharedmemory/region/r/register": [
        {"raw_handle": {"b64": "A" * 88}, "device_id": 0, "byte_size": 64}
    ],
    "/v2/systemsharedmemory/region/r/unregister": [{}],
    "/v2/models/plain/trace/setting": [{"trace_rate": "1000", "trace_count": "1"}],
}
_READ = [
    *("/v2", "/v2/health/live", "/v2/health/ready", "/v2/models/plain", "/v2/models/plain/config"),
    *("/v2/models/stats", "/v2/models/plain/versions/1/stats", "/v2/logging", "/v2/trace/setting"),
    *("/v2/systemsharedmemory/status", "/openapi.json"),
]
_SIZES = [
    *(
        "0",
        "1",
        "-1",
        "+5",
        "0x10",
        "2.5",
        "9" * 30,
        "2147483647",
        "2147483648",
        "4294967296",
        " ",
        "a",
    ),
    *("99999", "00000000000000000005", "1e3", "1,1"),
]


def framed(path, body, headers=(), method="POST"):
    """Return the bytes of a request with valid framing."""
    lines = "".join(f"{name}: {value}\r\n" for name, value in headers)
    head = f"{method} {path} HTTP/1.1\r\nHost: x\r\n{lines}Content-Length: {len(body)}\r\n\r\n"
    return head.encode("utf-8", "surrogateescape") + body


def document(random):
    """(path, a spoiled document for it)"""
    path = random.choice(list(_DOCUMENTS))
    return path, spoiled(random, random.choice(_DOCUMENTS[path]))


def in_json(random):
    """A spoiled document; its text may be spoiled too."""
    path, found = document(random)
    text = as_json(random, found)
    return framed(path, damaged(random, text) if random.random() < 0.25 else text)


def in_binary(random):
    """A request of the binary extension: lengths that are not those of its parts."""
    tails = [
        np.float32(21).tobytes(),
        b"",
        b"\0" * 3,
        b"\0" * 5,
        _BYTES,
        struct.pack("<I", 2**31) + b"x",
    ]
    tail = random.choice(tails)
    size = random.choice((len(tail), len(tail), 0, 4, 2**31, 2**63 - 1, 2**64, -1))
    entry = {
        "name": random.choice(("INPUT0", "INPUT0", "MODE", *TEXTS)),
        "datatype": random.choice(("FP32", "FP32", "BYTES", "INT64", "FP16", "BOOL")),
        "shape": random.choice(([1], [1], [0], [2**62, 4], [2**32, 2**32], [-1], [], [1] * 101)),
        "parameters": {"binary_data_size": size},
    }
    wanted = {"inputs": [entry], "parameters": {"binary_data_output": random.choice((True, 7))}}
    if random.random() < 0.3:
        wanted = spoiled(random, wanted)
    text = as_json(random, wanted)
    length = random.choice((str(len(text)), str(len(text)), str(len(text) - 1), *_SIZES))
    model = random.choice(("plain", "plain", "faulty", "add_sub", "absent"))
    body = text + tail
    if random.random() < 0.2:
        body = damaged(random, body)
    headers = [("Inference-Header-Content-Length", length)]
    if random.random() < 0.05:
        headers.append(("Inference-Header-Content-Length", "1"))
    return framed(f"/v2/models/{model}/infer", body, headers)


@cache
def _bomb():
    """More than --http-max-input-size, in 70 kB."""
    return gzip.compress(b" " * 70_000_000, 1)


def packed(random):
    """Compressed bodies that are damaged, cut, of another form, or very large inside."""
    body = as_json(random, spoiled(random, GOOD)) if random.random() < 0.5 else GOOD_BODY
    pack = random.choice((gzip.compress, zlib.compress))
    squeezed = _bomb() if random.random() < 0.02 else pack(body)
    if random.random() < 0.6:
        squeezed = damaged(random, squeezed)
    encoding = random.choice(("gzip", "deflate", "gzip, gzip", "br", "identity", "GZIP", ""))
    return framed("/v2/models/plain/infer", squeezed, [("Content-Encoding", encoding)])


def elsewhere(random):
    """Paths, methods and headers that are of no use."""
    path = random.choice(_READ)
    if random.random() < 0.7:
        path = path.replace(
            "plain", random.choice(("..", "%2e%2e", "%00", "a" * 4000, "p%0d%0aX:%20y", "é"))
        )
        path = path.replace("versions/1", "versions/" + random.choice(_SIZES).strip() + "9")
    if random.random() < 0.2:
        path += random.choice(("?", "?a=" + "b" * 2000, "#x", "//", "/", "/.."))
    method = random.choice(("GET", "GET", "POST", "PUT", "DELETE", "OPTIONS", "PATCH"))
    headers = [
        (name, value)
        for name, value in (
            ("traceparent", "00-" + "f" * 32 + "-" + "1" * 16 + "-01"),
            ("grpc-timeout", random.choice(("1n", "99999999H", "x", "-1S"))),
            ("Accept-Encoding", random.choice(("gzip;q=x", "gzip;q=0", "deflate, " * 50))),
            ("X", "y" * random.choice((1, 7000))),
        )
        if random.random() < 0.3
    ]
    return framed(path, b"" if method == "GET" else b"{}", headers, method)


def unframed(random):
    """Return bytes without a defined end: for a separate connection, whose sending side is closed."""
    good = framed("/v2/models/plain/infer", GOOD_BODY)
    head, _, body = good.partition(b"\r\n\r\n")
    chunked = head.replace(b"Content-Length: %d" % len(body), b"Transfer-Encoding: chunked")
    kind = random.randrange(9)
    if kind == 0:
        return damaged(random, good)
    if kind == 1:
        sizes = [
            b"%x" % len(body),
            b"-1",
            b"0x5",
            b"fffffffffffffffff",
            b"5;" + b"a" * 9000,
            b"",
            b"g",
        ]
        return chunked + b"\r\n\r\n" + random.choice(sizes) + b"\r\n" + body + b"\r\n0\r\n\r\n"
    if kind == 2:
        pieces = b"".join(b"1\r\n%c\r\n" % byte for byte in body)
        return damaged(random, chunked + b"\r\n\r\n" + pieces + b"0\r\n\r\n")
    if kind == 3:
        both = head + b"\r\nTransfer-Encoding: chunked"
        return both + b"\r\n\r\n%x\r\n%b\r\n0\r\n\r\n" % (len(body), body)
    if kind == 4:
        lengths = [b"-1", b"+5", b"5, 5", b"9" * 25, b"0x5", b" ", b"5\r\nContent-Length: 6"]
        return (
            head.replace(b": %d" % len(body), b": " + random.choice(lengths)) + b"\r\n\r\n" + body
        )
    if kind == 5:
        fields = [
            b"X" * 9000 + b": y",
            b": y",
            b"X\0: y",
            b" folded",
            b"X : y",
            b"X: \x80\xff",
            b"X:y\n",
        ]
        return head + b"\r\n" + random.choice(fields) + b"\r\n\r\n" + body
    if kind == 6:
        return head + b"".join(b"\r\nX-%d: y" % i for i in range(300)) + b"\r\n\r\n" + body
    if kind == 7:
        return good[: random.randrange(len(good))]
    starts = [
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"\x16\x03\x01\x02\0",
        b"GET / HTTP/9.9\r\n\r\n",
        b"\r\n" * 50,
    ]
    return random.choice(starts) + random.randbytes(random.randrange(64))


KINDS = {"json": in_json, "binary": in_binary, "packed": packed, "elsewhere": elsewhere}
WEIGHTS = {"json": 45, "binary": 35, "packed": 4, "elsewhere": 12}
UNFRAMED_SHARE = 0.04
