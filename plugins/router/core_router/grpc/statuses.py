"""The statuses of gRPC: those that the router gives itself, and how all of them count."""

from __future__ import annotations

from typing import Final
from urllib.parse import quote

from core_router.grpc.native.blocks import block_of, fields_of

OK: Final = 0
DEADLINE_EXCEEDED: Final = 4
NOT_FOUND: Final = 5
RESOURCE_EXHAUSTED: Final = 8
INTERNAL: Final = 13
UNAVAILABLE: Final = 14

REFUSED_STREAM: Final = 7
"""Code of HTTP/2: the other side has not begun with a stream."""

_LONGEST_TEXT = 3000  # of an error: clients take heads of 8 KiB
_PRINTABLE = "".join(chr(each) for each in range(0x20, 0x7F) if chr(each) != "%")

# Statuses of gRPC as those of HTTP, for metrics and ejection.
_AS_HTTP = {0: 200, 2: 500, 4: 504, 13: 500, 14: 503, 15: 500}


def as_http(status: int) -> int:
    """Return the status of HTTP with the same meaning, by class: 2xx, 4xx or 5xx."""
    return _AS_HTTP.get(status, 400)


def status_block(status: int, text: str = "") -> bytes:
    """Return the block of trailers with a status."""
    fields = [(b"grpc-status", str(status).encode())]
    if text:
        encoded = quote(text[:_LONGEST_TEXT], safe=_PRINTABLE)
        fields.append((b"grpc-message", encoded.encode()))
    return block_of(fields)


def only_trailers(block: bytes) -> bytes:
    """Return a block of trailers, or the trailers of a response that has no more than its head."""
    fields = fields_of(block)
    return block_of([each for each in fields if each[0] not in (b":status", b"content-type")])


HEAD: Final = block_of([(b":status", b"200"), (b"content-type", b"application/grpc")])
"""The head of a response of the router."""


NO_STATUS: Final = status_block(INTERNAL, "the response of the server has no status")

_MOST_DIGITS = 8  # of a grpc-timeout
_UNITS = {b"H": 3600.0, b"M": 60.0, b"S": 1.0, b"m": 1e-3, b"u": 1e-6, b"n": 1e-9}


def seconds_of(timeout: bytes) -> float:
    """Return a grpc-timeout in seconds; a day for one that is malformed, which the server refuses."""
    number, unit = timeout[:-1], timeout[-1:]
    is_valid = number.isdigit() and len(number) <= _MOST_DIGITS and unit in _UNITS
    return int(number) * _UNITS[unit] if is_valid else 86400.0


def timeout_of(seconds: float) -> bytes:
    """Return a time as a grpc-timeout, which has eight digits at most."""
    left_us = max(int(seconds * 1e6), 1)
    return b"%du" % left_us if left_us < 10**8 else b"%dS" % min(int(seconds), 10**8 - 1)
