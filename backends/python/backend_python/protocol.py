"""Messages between the server and a child: kinds, frames, fixed parts. PROTOCOL.md explains them.

Standard library only, and nothing in it runs code from the other side: a fixed part by struct,
the rest as JSON.
"""

from __future__ import annotations

import json
import os
import socket
import struct
from collections.abc import Iterable, Sequence
from typing import Any, NamedTuple

# server → child
INITIALIZE = 1  # JSON: what to load; answered by INITIALIZED
COMPLETE = 2  # JSON: what to complete; answered by COMPLETED
EXECUTE = 3  # REGION, layout, fields; answered by EXECUTED or FAILED
CANCEL = 4  # number: batch; INDEX
RELEASE = 5  # only the released regions
REPLY = 6  # number: of the CALL; JSON {"value"} or {"error"}
FINALIZE = 7  # answered by FINALIZED, then the child ends
INFERRED = 8  # number: of the INFER; ANSWER, layout: one answer of the called model

# child → server
READY = 65  # the process is up; nothing of the model has been read
INITIALIZED = 66  # JSON: {} or {"error": text}
COMPLETED = 67  # JSON: {"config": …} or {"error": text}
EXECUTED = 68  # number: batch; DONE, layout
FAILED = 69  # number: batch; DONE, text
RESPOND = 70  # number: batch; ANSWER, layout: one answer before or after EXECUTED
LOG = 71  # JSON: [level, file, line, text]
CALL = 72  # number: of the call; JSON: [operation, arguments, dropped]; answered by REPLY
FINALIZED = 73  # JSON: {} or {"error": text}
INFER = 74  # number: of the call; REGION, layout, JSON; answered by INFERRED, once or more
STOP = 75  # number: of an INFER; INDEX: 1 if its answers are not wanted any more
RELEASED = 76  # only the released regions

HEADER = struct.Struct("<IBxHQ")  # bytes after the header, kind, released regions, number
REGION = struct.Struct("<QQI")  # offset and size of the region, bytes of the layout
DONE = struct.Struct("<QQQQ")  # offset and size of the region, start and end of execute in ns
ANSWER = struct.Struct("<QQII")  # offset and size of the region, index of the request, flags
INDEX = struct.Struct("<I")

MOST_RELEASED = 0xFFFF
MOST_BYTES = 1 << 28  # of one message; tensors do not travel in messages

FINAL = 1  # a flag of RESPOND and of INFERRED


class ProtocolError(Exception):
    """The other side sent what no version of this protocol has."""


class Frame(NamedTuple):
    """One message as it came."""

    kind: int
    number: int
    released: tuple[int, ...]  # offsets of regions of the receiver's arena that are free again
    content: bytes


def frame(kind: int, number: int = 0, content: bytes = b"", released: Sequence[int] = ()) -> bytes:
    """The bytes of a message."""
    count = len(released)
    header = HEADER.pack(8 * count + len(content), kind, count, number)
    if count:
        return header + struct.pack(f"<{count}Q", *released) + content
    return header + content


_encode = json.JSONEncoder(separators=(",", ":")).encode


def to_json(value: Any) -> bytes:
    return _encode(value).encode()


class Reader:
    """Cuts what arrives on a socket into frames. One thread at a time."""

    def __init__(self, sock: socket.socket):
        self._sock = sock
        self._buffer = bytearray(1 << 16)
        self._start = 0  # of what has not been cut yet
        self._end = 0  # of what has arrived

    def receive(self) -> bool:
        """Receive once; False if the other side has closed. BlockingIOError as the socket raises it."""
        if self._start == self._end:
            self._start = self._end = 0
        elif self._end == len(self._buffer):
            self._make_room()
        count = self._sock.recv_into(memoryview(self._buffer)[self._end :])
        self._end += count
        return count > 0

    def frames(self) -> Iterable[Frame]:
        """The whole messages that have arrived."""
        while self._end - self._start >= HEADER.size:
            length, kind, count, number = HEADER.unpack_from(self._buffer, self._start)
            if length > MOST_BYTES or 8 * count > length:
                raise ProtocolError(f"message of {length} bytes with {count} regions")
            start = self._start + HEADER.size
            if self._end - start < length:
                return
            self._start = start + length
            released = struct.unpack_from(f"<{count}Q", self._buffer, start) if count else ()
            yield Frame(
                kind, number, released, bytes(self._buffer[start + 8 * count : start + length])
            )

    def _make_room(self) -> None:
        """The buffer is full and holds a part of a message: move it to the front, or grow."""
        size = len(self._buffer)
        if self._start < size // 2:
            size *= 2
        grown = bytearray(size)
        kept = self._end - self._start
        grown[:kept] = self._buffer[self._start : self._end]
        self._buffer, self._start, self._end = grown, 0, kept


def close_fds(*fds: int) -> None:
    for fd in fds:
        os.close(fd)
