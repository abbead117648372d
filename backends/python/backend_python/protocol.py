"""Messages between the server and a child process: kinds, frames, fixed parts. See PROTOCOL.md.

No message contains code: core.native splits frames, struct unpacks fixed parts, the rest is JSON.
"""

from __future__ import annotations

import json
import os
import socket
import struct
from collections.abc import Callable, Sequence
from typing import Any

from backend_python.compiled import Frame as Frame
from backend_python.compiled import Reader, message

# server → child
INITIALIZE = 1  # JSON: what to load; answered by INITIALIZED
COMPLETE = 2  # JSON: what to complete; answered by COMPLETED
EXECUTE = 3  # REGION, layout, fields; answered by EXECUTED or FAILED
CANCEL = 4  # number: batch; INDEX
RELEASE = 5  # only the released regions
REPLY = 6  # number: of the CALL; JSON {"value"} or {"error"}
FINALIZE = 7  # answered by FINALIZED, then the child ends
INFERRED = 8  # number: of the INFER; ANSWER, layout: one answer of the called model
GO = 9  # number: batch; INDEX: the answer to a RESPOND with ASKS
ASK = 10  # number: of the question; whether the model is ready; answered by TOLD

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
ABANDONED = 78  # number: batch; INDEX: a response sender is gone that owed the last answer
TOLD = 77  # number: of the ASK; JSON {"value"} or {"error"}

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

# Among the released regions: numbers with this bit are of loans of GPU memory (loans.py).
LOANS = 1 << 63

MOST_RELEASED = 0xFFFF
MOST_BYTES = 1 << 28  # of one message; large tensors are not in messages

# server ⇄ template, server → worker
ASKED = 6  # most file descriptors of a request: channel, inputs, outputs, output, error, status
CHILD = b"f"  # with all of them
WORKER = b"w"  # control, output, error, status
FORKED = struct.Struct("<i")  # the process id; with the pidfd beside it
STATUS = struct.Struct("<i")  # exit status, or the negative number of a signal

FINAL = 1  # a flag of RESPOND and of INFERRED
ASKS = 2  # a flag of RESPOND: GO is to come when the client has room for more
LENT = 4  # a flag of INFERRED: tensors of it are lent


class ProtocolError(Exception):
    """The other side sent a message that does not follow the protocol."""


def frame(kind: int, number: int = 0, content: bytes = b"", released: Sequence[int] = ()) -> bytes:
    """Return the bytes of a message."""
    return message(kind, number, released, [content])


_encode = json.JSONEncoder(separators=(",", ":")).encode
_scan: Callable[[str, int], tuple[Any, int]] = json.JSONDecoder().scan_once  # type: ignore[attr-defined]


def to_json(value: Any) -> bytes:
    return _encode(value).encode()


def from_json(text: bytes) -> Any:
    """Parse text that `to_json` made. Faster than json.loads, which accepts other encodings and blanks.

    Raises StopIteration if the text is not JSON.
    """
    return _scan(str(text, "utf-8"), 0)[0]


def reader(sock: socket.socket) -> Reader:
    """Return a reader that splits what arrives on a channel into messages."""
    return Reader(sock, MOST_BYTES)


def close_fds(*fds: int) -> None:
    for fd in fds:
        os.close(fd)
