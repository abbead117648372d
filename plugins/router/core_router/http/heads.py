"""RequestHead and ResponseHead: the start of a message, as far as a router needs it.

bytes ─► [request_head, response_head] ─► size of the body, fate of the connection, bytes to pass on

Grammar and framing are those of RFC 9112, without its leniencies. A head with two meanings is refused, so
client, router and server never see different ends of a message.
"""

from __future__ import annotations

import re

MOST_BYTES = 16 * 1024
"""Largest head in bytes."""

CHUNKED = -1
UNTIL_CLOSE = -2
"""Values of `body_size`: the body has chunks; it ends with the connection."""

_TOKEN = rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+"
_REQUEST_LINE = re.compile(rb"([A-Z]{1,32}) (/[!-~]*|\*) HTTP/1\.([01])\r\n")
_STATUS_LINE = re.compile(rb"HTTP/1\.([01]) ([1-5][0-9][0-9])(?: [^\x00-\x08\x0a-\x1f\x7f]*)?\r\n")
_FIELDS = re.compile(rb"(?:" + _TOKEN + rb":[^\x00-\x08\x0a-\x1f\x7f]*\r\n)*\r\n")
_KNOWN = re.compile(
    rb"\n(content-length|transfer-encoding|connection|expect|upgrade|inference-header-content-length):([^\r]*)",
    re.IGNORECASE,
)
_DIGITS = re.compile(rb"[0-9]{1,18}")
# Fields about one connection, which another connection must not see (RFC 9110, 7.6.1).
_OF_CONNECTION = (b"connection", b"keep-alive", b"proxy-connection")
# Fields that Connection cannot remove: server and router would see different ends of the message.
_OF_MESSAGE = (b"content-length", b"transfer-encoding", b"host", b"authorization")

# Heads repeat: most requests of a client differ in their bodies only.
_MOST_KEPT = 512
_LONGEST_KEPT = 1024
_requests: dict[bytes, RequestHead] = {}
_responses: dict[bytes, ResponseHead] = {}


class BadHead(Exception):
    """A head that is not HTTP/1.1, or has two meanings.

    status   of the response
    """

    def __init__(self, status: int, text: str):
        super().__init__(text)
        self.status = status
        self.text = text


class RequestHead:
    """The head of a request. Never changes.

    target       path and query, as received
    minor        0 or 1: the version is HTTP/1.minor
    body_size    bytes of the body, or CHUNKED
    keep_alive   whether the client may send more requests on this connection; HTTP/1.0 gets one response
    expects      whether the client waits for `100 Continue` before it sends the body
    upgrades     whether the client asks for another protocol
    json_size    bytes of JSON at the start of the body; -1 if the body has no binary tensors
    passed_on    bytes of the head for the server
    is_same      whether these are the received ones
    """

    def __init__(self, raw: bytes, match: re.Match[bytes]):
        self.method = match[1]
        self.target = match[2]
        self.minor = 0 if match[3] == b"0" else 1
        fields = _Fields(raw)
        self.keep_alive = self.minor == 1 and fields.keeps_alive(1)
        self.upgrades = fields.upgrade != b"" and b"upgrade" in fields.tokens()
        self.expects = fields.expect != b""
        self.json_size = int(fields.json_size) if _DIGITS.fullmatch(fields.json_size) else -1
        self.body_size = 0
        if self.minor == 0 and fields.encoding:
            raise BadHead(400, "HTTP/1.0 has no Transfer-Encoding")
        if (size := fields.body_size()) is not None:
            self.body_size = size
        if self.expects and fields.expect.lower() != b"100-continue":
            raise BadHead(417, "the only known Expect is 100-continue")
        self.passed_on = raw
        self.is_same = not fields.connection and not self.expects
        if not self.is_same:
            dropped = [*_OF_CONNECTION, *fields.tokens(), b"expect"]
            self.passed_on = _without(raw, dropped, keep=(b"upgrade",) if self.upgrades else ())
            if self.upgrades:
                self.passed_on = self.passed_on[:-2] + b"Connection: Upgrade\r\n\r\n"


class ResponseHead:
    """The head of a response. Never changes.

    body_size    bytes of the body, CHUNKED or UNTIL_CLOSE; that of a response to HEAD has no body at all
    keep_alive   whether the server takes more requests on this connection
    passed_on    bytes of the head for the client
    is_same      whether these are the received ones
    """

    def __init__(self, raw: bytes, match: re.Match[bytes]):
        self.status = int(match[2])
        fields = _Fields(raw)
        self.keep_alive = fields.keeps_alive(1 if match[1] == b"1" else 0)
        self.body_size = UNTIL_CLOSE
        if self.status < 200 or self.status in (204, 304):
            self.body_size = 0
        elif (size := fields.body_size()) is not None:
            self.body_size = size
        self.passed_on = raw
        self.is_same = not fields.connection or self.status == 101
        if not self.is_same:
            self.passed_on = _without(raw, [*_OF_CONNECTION, *fields.tokens()])

    def closing(self) -> bytes:
        """Return the head for a client whose connection ends with this response."""
        return self.passed_on[:-2] + b"Connection: close\r\n\r\n"


class _Fields:
    """The fields of a head that define framing and connection."""

    def __init__(self, raw: bytes):
        self.length = self.encoding = self.connection = self.expect = self.upgrade = b""
        self.json_size = b""
        for match in _KNOWN.finditer(raw):
            name, value = match[1].lower(), match[2].strip(b" \t")
            if name == b"content-length":
                if self.length or not _DIGITS.fullmatch(value):
                    raise BadHead(400, "Content-Length must be one number")
                self.length = value
            elif name == b"transfer-encoding":
                if self.encoding or not value:
                    raise BadHead(400, "Transfer-Encoding must have one value")
                self.encoding = value
            elif name == b"connection":
                self.connection += (b"," if self.connection else b"") + value.lower()
            elif name == b"expect":
                self.expect = value
            elif name == b"upgrade":
                self.upgrade = value
            else:
                self.json_size = value

    def body_size(self) -> int | None:
        """Return the size of the body or CHUNKED; None if no field says it."""
        if self.encoding:
            if self.length:
                raise BadHead(400, "a message has Content-Length or Transfer-Encoding, not both")
            if self.encoding.lower() != b"chunked":
                raise BadHead(501, "the only known Transfer-Encoding is chunked")
            return CHUNKED
        return int(self.length) if self.length else None

    def tokens(self) -> list[bytes]:
        """Return the names in the field Connection, in lower case."""
        found = [each.strip(b" \t") for each in self.connection.split(b",")]
        return [each for each in found if each and each not in _OF_MESSAGE]

    def keeps_alive(self, minor: int) -> bool:
        """Return whether the sender keeps the connection open after this message."""
        if not self.connection:
            return minor == 1
        tokens = self.tokens()
        return b"close" not in tokens and (minor == 1 or b"keep-alive" in tokens)


def request_head(raw: bytes) -> RequestHead:
    """Return the head of a request from its bytes, which end with an empty line. Raises BadHead."""
    found = _requests.get(raw)
    if found is None:
        match = _REQUEST_LINE.match(raw)
        if match is None:
            raise BadHead(400, "the request line is not METHOD /path HTTP/1.1")
        if not _FIELDS.fullmatch(raw, match.end()):
            raise BadHead(400, "a header field is malformed")
        found = RequestHead(raw, match)
        if len(raw) <= _LONGEST_KEPT:
            if len(_requests) >= _MOST_KEPT:
                _requests.clear()
            _requests[raw] = found
    return found


def response_head(raw: bytes) -> ResponseHead:
    """Return the head of a response from its bytes, which end with an empty line. Raises BadHead."""
    found = _responses.get(raw)
    if found is None:
        match = _STATUS_LINE.match(raw)
        if match is None or not _FIELDS.fullmatch(raw, match.end()):
            raise BadHead(502, "the server's response is not HTTP/1.1")
        found = ResponseHead(raw, match)
        if len(raw) <= _LONGEST_KEPT:
            if len(_responses) >= _MOST_KEPT:
                _responses.clear()
            _responses[raw] = found
    return found


def _without(raw: bytes, names: list[bytes], keep: tuple[bytes, ...] = ()) -> bytes:
    """Return a head without the fields of these names, which are in lower case."""
    lines = raw.split(b"\r\n")
    kept = [
        line
        for line in lines[1:]
        if (name := line.partition(b":")[0].lower()) not in names or name in keep
    ]
    return b"\r\n".join([lines[0], *kept])
