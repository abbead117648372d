"""Recipe: how a costly request is made, in a form that can be changed a little at a time."""

from __future__ import annotations

import gzip
import math
import struct
import zlib
from dataclasses import dataclass, replace

MOST_PLAIN = 64 * 2**20
"""Bytes of a request before it is packed."""
MOST_CONNECTIONS = 12

_FP32 = b'{"name":"INPUT0","datatype":"FP32","shape":[1],"data":[1]}'
_INFER = b'{"inputs":[' + _FP32 + b"]"
_HEAD = b'{"inputs":[{"name":"INPUT0","datatype":"'
_TENSOR = b'","shape":[1,%d],"data":['

# Where a unit is repeated: path, what comes before and behind it.
HTTP = {
    "an unknown member": ("/v2/models/identity/infer", _INFER + b',"x":[', b"0]}"),
    "behind FP16": (
        "/v2/models/identity/infer",
        _HEAD + b'FP16","shape":[1],"data":[1]}],"x":[',
        b"0]}",
    ),
    "data of FP32": ("/v2/models/identity/infer", _HEAD + b"FP32" + _TENSOR, b"0]}]}"),
    "data of FP64": ("/v2/models/identity/infer", _HEAD + b"FP64" + _TENSOR, b"0]}]}"),
    "data of BYTES": ("/v2/models/identity/infer", _HEAD + b"BYTES" + _TENSOR, b'""]}]}'),
    "inputs": ("/v2/models/identity/infer", b'{"inputs":[', _FP32 + b"]}"),
    "outputs": ("/v2/models/identity/infer", _INFER + b',"outputs":[', b"{}]}"),
    "parameters": ("/v2/models/identity/infer", _INFER + b',"parameters":{', b'"a":1}}'),
    "the shape": ("/v2/models/identity/infer", _HEAD + b'FP32","data":[1],"shape":[', b"1]}]}"),
    "the id": ("/v2/models/identity/infer", _INFER + b',"id":"', b'"}'),
    "generate": ("/v2/models/identity/generate", b'{"INPUT0":[', b"0]}"),
    "a member of generate": ("/v2/models/identity/generate", b'{"INPUT0":1,"x":[', b"0]}"),
    "generate_stream": ("/v2/models/identity/generate_stream", b'{"INPUT0":[', b"0]}"),
    "the index": ("/v2/repository/index", b'{"ready":true,"x":[', b"0]}"),
    "a load": ("/v2/repository/models/absent/load", b'{"parameters":{"config":"', b'"}}'),
    "parameters of a load": ("/v2/repository/models/absent/load", b'{"parameters":{', b'"a":1}}'),
    "settings of the log": ("/v2/logging", b'{"x":[', b"0]}"),
    "settings of traces": ("/v2/trace/setting", b'{"trace_level":[', b'"OFF"]}'),
    "a region": ("/v2/systemsharedmemory/region/r/register", b'{"key":"', b'","byte_size":1}'),
    "the whole body": ("/v2/models/identity/infer", b"", b""),
}
HTTP_UNITS = [
    *(
        b"0,",
        b"1e9,",
        b"-0.5,",
        b"Inf,",
        b"NaN,",
        b"[0],",
        b"[[]],",
        b"[",
        b"[],",
        b'"",',
        b'"a":1,',
    ),
    *(
        b'{"":{}},',
        b"{},",
        b'"",1.5,',
        b"null,",
        b"true,",
        b"12345678901234567890,",
        b'"\\u0000",',
        b" ",
    ),
    *(b'{"name":"a"},', b'{"name":"OUTPUT0","parameters":{"classification":1000}},', b"\\n", b"a"),
    *(b"\xff", b'"\\ud83d\\ude00",', b"0.1234567890123456789,", b"1,", b"\\u00e9"),
]

_SERVICE = "/inference.GRPCInferenceService/"
# A model's name, so that the request goes as far as it can.
_NAMED = b"\x0a\x08identity"
_INPUT = b"\x0a\x06INPUT0\x12\x04FP32\x1a\x02\x01\x01"
GRPC = {
    "infer": (_SERVICE + "ModelInfer", _NAMED, b""),
    "infer with an input": (_SERVICE + "ModelInfer", _NAMED + b"\x2a\x12" + _INPUT, b""),
    "stream": (_SERVICE + "ModelStreamInfer", _NAMED, b""),
    "settings of the log": (_SERVICE + "LogSettings", b"", b""),
    "settings of traces": (_SERVICE + "TraceSetting", b"", b""),
    "a load": (_SERVICE + "RepositoryModelLoad", b"\x12\x06absent", b""),
    "the index": (_SERVICE + "RepositoryIndex", b"", b""),
    "statistics": (_SERVICE + "ModelStatistics", _NAMED, b""),
    "metadata": (_SERVICE + "ModelMetadata", _NAMED, b""),
    "a region": (_SERVICE + "SystemSharedMemoryRegister", b"", b""),
}
GRPC_UNITS = [
    # Empty submessages, map entries and strings of the first fields, then some that hold a little.
    *(bytes([field << 3 | 2, 0]) for field in range(1, 8)),
    *(b"\x22\x03\x0a\x01a", b"\x2a\x02\x0a\x00", b"\x2a\x04\x22\x02\x0a\x00", b"\x32\x02\x0a\x00"),
    *(b"\x3a\x00", b"\x3a\x04\0\0\0\0", b"\x2a\x04\x2a\x02\x0a\x00", b"\x08\x01", b"\xf8\x7f\x01"),
    *(
        b"\x0b\x0c",
        b"\x2a\x03\x1a\x01\x01",
        b"\x2a\x04\x2a\x02\x42\x00",
        b"\x7a\x00",
        b"\x0d\0\0\0\0",
    ),
]


@dataclass(frozen=True)
class Recipe:
    """A request, or several equal ones on separate connections.

    protocol      "http" or "grpc"
    place         place of the units: a key of HTTP or GRPC
    units         repeated parts, one after the other
    count         number of repetitions
    packing       "gzip", "deflate" or ""
    connections   number of connections that send it at the same time
    reads         whether they read the responses
    """

    protocol: str
    place: str
    units: tuple[bytes, ...]
    count: int
    packing: str = "gzip"
    connections: int = 1
    reads: bool = True

    def __str__(self) -> str:
        packed = f", {self.packing}" if self.packing else ""
        unread = "" if self.reads else ", unread"
        unit = b"".join(self.units)
        return f"{self.place}: {unit!r} x {self.count}{packed}, {self.connections} conn.{unread}"

    @property
    def target(self) -> tuple[str, bytes, bytes]:
        return (HTTP if self.protocol == "http" else GRPC)[self.place]

    def plain(self) -> bytes:
        """Return the body or the message before it is packed: at most MOST_PLAIN bytes and a little."""
        _, before, behind = self.target
        unit = b"".join(self.units)
        count = min(self.count, MOST_PLAIN // len(unit))
        if b"%d" in before:
            before %= count + 1
        return before + unit * count + behind

    def wire(self) -> bytes:
        """Return all bytes of the request of one connection over HTTP, or the message over gRPC with its
        prefix."""
        body = self.plain()
        if self.packing == "gzip":
            body = gzip.compress(body, 9)
        elif self.packing == "deflate":
            body = zlib.compress(body, 9)
        if self.protocol == "grpc":
            return struct.pack(">BI", bool(self.packing), len(body)) + body
        coding = f"Content-Encoding: {self.packing}\r\n" if self.packing else ""
        head = f"POST {self.target[0]} HTTP/1.1\r\nHost: x\r\n{coding}Content-Length: {len(body)}\r\n\r\n"
        return head.encode() + body


def drawn(random, protocol) -> Recipe:
    """Draw any recipe."""
    return Recipe(
        protocol,
        random.choice(list(HTTP if protocol == "http" else GRPC)),
        _units(random, protocol),
        int(math.exp(random.uniform(0, math.log(MOST_PLAIN)))),
        random.choice(("gzip", "gzip", "deflate", "")),
        random.choice((1, 1, 1, MOST_CONNECTIONS)),
        random.random() < 0.8,
    )


def changed(random, recipe) -> Recipe:
    """Draw a recipe that differs from this one in one respect."""
    fresh = drawn(random, recipe.protocol)
    name = random.choice(("place", "units", "count", "scale", "packing", "connections", "reads"))
    if name == "scale":
        scaled = int(recipe.count * math.exp(random.uniform(-1.5, 1.5)))
        return replace(recipe, count=max(1, min(scaled, MOST_PLAIN)))
    return replace(recipe, **{name: getattr(fresh, name)})


def _units(random, protocol):
    known = HTTP_UNITS if protocol == "http" else GRPC_UNITS
    return tuple(random.choice(known) for _ in range(random.choice((1, 1, 2, 3))))
