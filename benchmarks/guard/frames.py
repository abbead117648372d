"""The HTTP/2 frames of a gRPC client: encode calls, decode responses. It supports only the frames it needs.

message ─► [frames] ─► bytes.  Headers have the form of real clients: literal in the first call, then indices
in the connection's dynamic table.
"""

from __future__ import annotations

import struct
from collections.abc import Iterator

from benchmarks.exchange import GRPC_PATH, grpc_frame

DATA, HEADERS, SETTINGS, WINDOW_UPDATE = 0, 1, 4, 8
END_STREAM, END_HEADERS = 1, 4
PREFACE = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"
_WIDEST = 2**31 - 1 - 65535  # added to the initial window of a connection

# RFC 7541, appendix A: `:method: POST`, `:scheme: http`; and names without values in the table.
_POST, _HTTP = 3, 6
_AUTHORITY, _PATH, _CONTENT_TYPE, _USER_AGENT = 1, 4, 31, 58
_FIRST_OWN = 62  # index of the field that was added last


def opening() -> bytes:
    """Return the first bytes of a connection."""
    return PREFACE + frame(SETTINGS) + frame(WINDOW_UPDATE, payload=struct.pack(">I", _WIDEST))


def call(number: int, message: bytes, *, first: bool) -> bytes:
    """Return a whole call on stream `number`; `first` of its connection has literal headers."""
    head = _head_written_out() if first else _head_by_places()
    return frame(HEADERS, END_HEADERS, number, head) + frame(
        DATA, END_STREAM, number, grpc_frame(message)
    )


def messages(data: bytes) -> list[bytes]:
    """Return the messages of responses; in this server's form, each has its own frames."""
    found: dict[int, bytes] = {}
    for kind, number, payload in _frames(data):
        if kind == DATA:
            found[number] = found.get(number, b"") + payload
    return [each[5:] for each in found.values()]


def frame(kind: int, flags: int = 0, number: int = 0, payload: bytes = b"") -> bytes:
    size = struct.pack(">I", len(payload))[1:]
    return size + struct.pack(">BBI", kind, flags, number) + payload


def _frames(data: bytes) -> Iterator[tuple[int, int, bytes]]:
    """Yield (kind, stream, payload) of each frame."""
    at = 0
    while at < len(data):
        end = at + 9 + int.from_bytes(data[at : at + 3], "big")
        yield data[at + 3], int.from_bytes(data[at + 5 : at + 9], "big"), data[at + 9 : end]
        at = end


def _head_written_out() -> bytes:
    """Return literal header fields; five of them enter the connection's table."""
    fields = (
        (_PATH, GRPC_PATH),
        (_AUTHORITY, "localhost:8001"),
        (_CONTENT_TYPE, "application/grpc"),
        (_USER_AGENT, "grpc-c++/1.51.1 grpc-c/29.0.0 (linux; chttp2)"),
        (0, "te"),
    )
    head = bytes([0x80 | _POST, 0x80 | _HTTP])
    for name, text in fields:
        head += bytes([0x40 | name])
        head += _string("te") + _string("trailers") if name == 0 else _string(text)
    return head


def _head_by_places() -> bytes:
    return bytes([0x80 | _POST, 0x80 | _HTTP, *(0x80 | _FIRST_OWN + i for i in (4, 3, 2, 1, 0))])


def _string(text: str) -> bytes:
    return bytes([len(text)]) + text.encode()
