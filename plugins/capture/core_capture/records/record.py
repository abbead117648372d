"""Record: one captured call, and its form in a file.

A record is a marker, two numbers and a payload (docs/operate/capture.md):

    C0 52 45 43 | size of the payload: uint32 | CRC-32 of the payload: uint32 | payload
    payload = size of the JSON: uint32 | JSON in UTF-8 | the messages, one after another

All numbers are little endian. The JSON is an object with the fields of `Record`; for `received` and `sent` it
has the time and the size of each message.
"""

from __future__ import annotations

import re
import struct
import zlib
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Any

import orjson

MARKER = b"\xc0REC"
HEAD = struct.Struct("<4sII")
_SIZE = struct.Struct("<I")
_HOST = re.compile(r"[A-Za-z][A-Za-z0-9+.-]*://[^/?]*")
MOST_BYTES = 2**32 - 1  # of a payload

_PLAIN = (
    *("time_ns", "protocol", "model", "version", "client", "caller", "worker"),
    *("status", "duration_ns", "has_answer", "cut", "redacted"),
)


_TYPES: dict[str, tuple[type, ...]] = {
    **dict.fromkeys(("protocol", "model", "version", "client", "caller"), (str,)),
    **dict.fromkeys(("head", "answer_head"), (str,)),
    **dict.fromkeys(("time_ns", "worker", "status", "duration_ns"), (int,)),
    **dict.fromkeys(("has_answer", "cut"), (bool,)),
    "redacted": (list, tuple),
}


class Damaged(ValueError):
    """Bytes that are no record: its text says what is wrong with them."""


@dataclass(slots=True)
class RecordedMessage:
    """One message of a call.

    at_ns   time after the beginning of the call
    data    the body of HTTP or a part of it, as it came; or a message of gRPC, not compressed
    """

    at_ns: int
    data: bytes


@dataclass(slots=True)
class Record:
    """One captured call.

    time_ns       nanoseconds since the epoch at its beginning
    protocol      "http" or "grpc"
    head          start line and header fields, each with its line end, without the empty line; one character
                  for each byte. gRPC has `POST /package.Service/Method HTTP/2` and its metadata. Secrets are
                  replaced
    model, version   as the client named them; "" if unknown
    client        address and port; "" for a Unix domain socket
    caller        name of an identified caller, else ""
    worker        number of the process among the workers, from 0 on
    status        of HTTP, 499 for a client that has disconnected; or the status code of gRPC
    duration_ns   until the end of the answer
    answer_head   of the response, in the form of `head`
    has_answer    whether `sent` was recorded
    cut           whether messages are missing, because the call had too many bytes
    redacted      names of tensors whose elements were replaced
    """

    time_ns: int
    protocol: str
    head: str
    model: str = ""
    version: str = ""
    client: str = ""
    caller: str = ""
    worker: int = 0
    status: int = 0
    duration_ns: int = 0
    answer_head: str = ""
    has_answer: bool = False
    cut: bool = False
    redacted: Sequence[str] = ()
    received: list[RecordedMessage] = field(default_factory=list)
    sent: list[RecordedMessage] = field(default_factory=list)

    @property
    def target(self) -> str:
        """Return the path and the query of HTTP, or /package.Service/Method.

        A client of a proxy writes http://host/path: the host is left out.
        """
        found = words_of(self.head.partition("\r\n")[0])[1]
        if host := _HOST.match(found):
            found = found[host.end() :]
            return found if found.startswith("/") else f"/{found}"
        return found

    @property
    def path(self) -> str:
        return self.target.partition("?")[0]

    @property
    def method(self) -> str:
        return self.head.partition(" ")[0]

    @property
    def fields(self) -> list[tuple[str, str]]:
        """Return the header fields of the request: names as the client wrote them, and values."""
        return fields_of(self.head.partition("\r\n")[2])

    @property
    def answer_fields(self) -> list[tuple[str, str]]:
        """Return the header fields of the response."""
        start, _, rest = self.answer_head.partition("\r\n")
        return fields_of(rest if start.startswith("HTTP/") else self.answer_head)

    @property
    def grpc_message(self) -> str:
        """Return the text of the status of gRPC; "" for none."""
        text = dict(self.answer_fields).get("grpc-message", "")
        return text.encode("latin-1").decode("utf-8", "surrogateescape")

    @property
    def body(self) -> bytes:
        """Return all messages of the client as one text of bytes."""
        return b"".join(each.data for each in self.received)

    @property
    def answer(self) -> bytes:
        """Return all messages of the server as one text of bytes; b"" if they were not recorded."""
        return b"".join(each.data for each in self.sent)

    @property
    def failed(self) -> bool:
        return self.status >= 400 if self.protocol == "http" else self.status != 0

    @property
    def gone(self) -> bool:
        """Return whether the client has left before the end of the answer."""
        return self.status == (499 if self.protocol == "http" else 1)

    @property
    def end_ns(self) -> int:
        return self.time_ns + self.duration_ns


def words_of(start: str) -> tuple[str, str, str]:
    """Return method, target and version of a request line."""
    method, _, rest = start.partition(" ")
    target, _, version = rest.rpartition(" ")
    return method, target, version


def fields_of(lines: str) -> list[tuple[str, str]]:
    """Return the (name, value) of each line of a head."""
    found = []
    for line in lines.split("\r\n"):
        name, colon, value = line.partition(":")
        if colon:
            found.append((name, value.strip(" \t")))
    return found


def encode(record: Record) -> list[bytes]:
    """Return a record as a file has it, in pieces. Raises Damaged for one that is too large."""
    plain: dict[str, Any] = {name: getattr(record, name) for name in _PLAIN}
    plain["head"] = record.head
    plain["answer_head"] = record.answer_head
    plain["received"] = [(each.at_ns, len(each.data)) for each in record.received]
    plain["sent"] = [(each.at_ns, len(each.data)) for each in record.sent]
    text = orjson.dumps(plain)
    pieces = [_SIZE.pack(len(text)), text]
    pieces += [each.data for each in (*record.received, *record.sent)]
    size = sum(map(len, pieces))
    if size > MOST_BYTES:
        raise Damaged(f"a record of {size} bytes is too large")
    checksum = 0
    for piece in pieces:
        checksum = zlib.crc32(piece, checksum)
    return [HEAD.pack(MARKER, size, checksum), *pieces]


def check(head: bytes, payload: bytes) -> None:
    """Raises Damaged if the payload is not that of its record head."""
    _, size, checksum = HEAD.unpack(head)
    if len(payload) != size:
        raise Damaged(f"a record ends after {len(payload)} of {size} bytes")
    if zlib.crc32(payload) != checksum:
        raise Damaged("a record has a wrong checksum")


def _check_types(record: Record) -> None:
    """Raise TypeError for a member of another type than an encoded record has."""
    for name, types in _TYPES.items():
        if type(getattr(record, name)) not in types:
            raise TypeError(f"{name} is {getattr(record, name)!r:.100}")
    if not all(isinstance(each, str) for each in record.redacted):
        raise TypeError("redacted is no list of names")


def decode(payload: bytes, *, with_messages: bool = True) -> Record:
    """Return the record in a payload whose checksum is right. Raises Damaged for an unknown form.

    with_messages   False leaves the data of all messages empty
    """
    try:
        (size,) = _SIZE.unpack_from(payload)
        plain = orjson.loads(payload[_SIZE.size : _SIZE.size + size])
        at = _SIZE.size + size
        names = (*_PLAIN, "head", "answer_head")
        record = Record(**{name: plain[name] for name in names if name in plain})
        _check_types(record)
        for messages, rows in ((record.received, plain["received"]), (record.sent, plain["sent"])):
            for at_ns, length in rows:
                if type(at_ns) is not int or type(length) is not int or length < 0:
                    raise TypeError("the size of a message is no number from 0 on")
                data = payload[at : at + length] if with_messages else b""
                messages.append(RecordedMessage(at_ns, data))
                at += length
        return record
    except (struct.error, KeyError, TypeError, ValueError) as error:
        raise Damaged(f"a record has an unknown form: {error!r}") from None
