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

PLACE = struct.Struct("<QQ")  # what REGION, DONE and ANSWER begin with; what follows in each:
LENGTH = struct.Struct("<I")
TIMES = struct.Struct("<QQ")
INDEX_FLAGS = struct.Struct("<II")

MARK = struct.Struct("<Q")  # what an arena begins with: the batch that the child has begun last

# In the place of a region's offset: the tensors are the last bytes of the message.
INLINE = 2**64 - 1
INLINE_BELOW = 1 << 15  # bytes; more lie in an arena

MOST_RELEASED = 0xFFFF
MOST_BYTES = 1 << 28  # of one message; tensors do not travel in messages

# server ⇄ template
ASKED = 4  # file descriptors of a request: channel, inputs, outputs, status
FORKED = struct.Struct("<i")  # the process id; with the pidfd beside it
STATUS = struct.Struct("<i")  # exit status, or the negative number of a signal

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
    return _head(kind, number, len(content), released) + content


def tensor_frame(
    kind: int,
    number: int,
    place: tuple[int, int],
    rest: bytes,
    pieces: Sequence[Any],
    released: Sequence[int],
) -> bytes:
    """The bytes of a message about tensors.

    place    offset (or INLINE) and size of their region
    rest     the content behind the place
    pieces   the region's bytes if they are INLINE, else nothing
    """
    length = PLACE.size + len(rest) + (place[1] if place[0] == INLINE else 0)
    head = _head(kind, number, length, released)
    return b"".join((head, PLACE.pack(*place), rest, *pieces))


def _head(kind: int, number: int, length: int, released: Sequence[int]) -> bytes:
    if not released:
        return HEADER.pack(length, kind, 0, number)
    count = len(released)
    return HEADER.pack(8 * count + length, kind, count, number) + struct.pack(
        f"<{count}Q", *released
    )


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
            content = bytes(memoryview(self._buffer)[start + 8 * count : self._start])
            yield Frame(kind, number, released, content)

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
