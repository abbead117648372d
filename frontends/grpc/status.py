"""Errors as gRPC says them: kinds as status codes, in one table, and texts that fit."""

from __future__ import annotations

import enum
import logging

from core.errors import CoreError, Kind, internal

logger = logging.getLogger("core")


class Code(enum.IntEnum):
    """The status codes of gRPC with which this server answers, with their numbers on the wire."""

    OK = 0
    CANCELLED = 1
    UNKNOWN = 2
    INVALID_ARGUMENT = 3
    DEADLINE_EXCEEDED = 4
    NOT_FOUND = 5
    ALREADY_EXISTS = 6
    PERMISSION_DENIED = 7
    RESOURCE_EXHAUSTED = 8
    UNIMPLEMENTED = 12
    INTERNAL = 13
    UNAVAILABLE = 14
    UNAUTHENTICATED = 16


CODES = {
    Kind.UNKNOWN: Code.UNKNOWN,
    Kind.INTERNAL: Code.INTERNAL,
    Kind.NOT_FOUND: Code.NOT_FOUND,
    Kind.INVALID: Code.INVALID_ARGUMENT,
    Kind.UNAVAILABLE: Code.UNAVAILABLE,
    Kind.UNSUPPORTED: Code.UNIMPLEMENTED,
    Kind.ALREADY_EXISTS: Code.ALREADY_EXISTS,
    Kind.CANCELLED: Code.CANCELLED,
    Kind.UNAUTHENTICATED: Code.UNAUTHENTICATED,
    Kind.FORBIDDEN: Code.PERMISSION_DENIED,
    Kind.EXHAUSTED: Code.RESOURCE_EXHAUSTED,
    Kind.DEADLINE_EXCEEDED: Code.DEADLINE_EXCEEDED,
}


def code_of(error: CoreError) -> Code:
    return CODES[error.kind]


# The text of a status travels in a header. Clients take 8 KiB of headers by default and answer
# RESOURCE_EXHAUSTED in place of the status to more, so a long text is worse than a cut one.
LONGEST_DETAILS = 6000  # bytes on the wire


def details(text: str) -> str:
    """Return `text` as the details of a status: valid Unicode, cut to the size that clients accept.

    A text that is cut ends with " [...]".
    """
    encoded = utf8(text).encode()
    wire_size = 0
    for position, byte in enumerate(encoded):
        # Bytes that are not printable ASCII travel as %XX.
        wire_size += 1 if 0x20 <= byte <= 0x7E and byte != 0x25 else 3
        if wire_size > LONGEST_DETAILS:
            return encoded[:position].decode(errors="ignore") + " [...]"
    return encoded.decode()


def unforeseen(path: str, error: Exception, id: str = "") -> CoreError:
    """Log an unexpected exception; return a CoreError(INTERNAL) for the client.

    Its text names only the method and the type of the exception.
    path   of the method
    id     the client's name for the request, "" for none
    """
    logger.error("[request id: %s] %s failed", id or "<id_unknown>", path, exc_info=error)
    return internal(f"{path.rpartition('/')[2]} failed: {type(error).__name__}; see the log")


def utf8(text: str) -> str:
    """Return `text` with ? for each surrogate code point, which protobuf cannot carry."""
    return text.encode(errors="replace").decode()
