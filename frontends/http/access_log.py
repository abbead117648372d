"""Access log entries for HTTP requests, on aiohttp and on the fast path (--access-log)."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from json import JSONDecoder
from typing import Any

from core.telemetry.tracing import Trace
from core.tensor import Buffer
from frontends.http.aiohttp_web import web
from frontends.http.message import HttpRequest
from frontends.shared.access_log import GONE, AccessLog, AccessLogEntry

MOST_SCANNED = 4096  # bytes of a refused body that are searched for its id
_DECODER = JSONDecoder()


def entry_of(request: web.BaseRequest) -> AccessLogEntry:
    """Return a new entry with the client, path and method of a request, and the trace in its headers."""
    client, path = client_of(request.transport), plain_path(request.raw_path)
    entry = AccessLogEntry("http", client, path, request.method)
    entry.belong(request.headers.get("traceparent", ""))
    return entry


def complete(entry: AccessLogEntry, named: Mapping[str, Any], call: HttpRequest | None) -> None:
    """Write model and version into an entry and, if there is a `call`, size, id and trace.

    named   named parts of the path
    call    None for a request that reached no service
    """
    entry.model = named.get("model") or ""
    entry.version = named.get("version") or ""
    if call is None:
        return
    entry.bytes_in = len(call.body)
    if (asked := call.asked) is None:
        entry.id = named_id(call.body)
    else:
        entry.id = asked.id
        if isinstance(asked.trace, Trace) and asked.trace.root is not None:
            entry.trace = f"{asked.trace.root.trace_id:032x}"


def entry_of_head(client: str, head: bytes, model: str, version: int, size: int) -> AccessLogEntry:
    """Return a new entry for a request on the fast path.

    head      begins with "POST ", then path, a blank and the version of HTTP; a header traceparent counts
    version   of the model; negative if the path has none
    size      bytes of the body
    """
    entry = AccessLogEntry(
        "http", client, plain_path(head[5 : head.find(b" ", 5)].decode("latin-1")), "POST"
    )
    entry.model = model
    entry.version = "" if version < 0 else str(version)
    entry.bytes_in = size
    if (at := head.lower().find(b"\r\ntraceparent:")) >= 0:
        entry.belong(head[at + 14 : head.find(b"\r\n", at + 2)].decode("latin-1"))
    return entry


def end_of_answer(answer: bytes | Sequence[Any] | None) -> tuple[int, int]:
    """Return status and body size in bytes of a fast-path response.

    answer   bytes, or buffers of which the first holds the whole head; None if the client has disconnected,
             which makes (GONE, 0)
    """
    if answer is None:
        return GONE, 0
    parts: Sequence[Any] = [answer] if isinstance(answer, bytes) else answer
    head, size = bytes(parts[0]), sum(map(len, parts))
    return int(head[9:12]), size - head.find(b"\r\n\r\n") - 4


def write_malformed(
    access: AccessLog, request: web.BaseRequest, status: int, response: web.StreamResponse
) -> None:
    """Write the access log line of a request that is malformed HTTP, or whose handler failed."""
    entry = AccessLogEntry(
        "http", client_of(request.transport), plain_path(request.raw_path), request.method
    )
    access.write(entry, status, size_of(response))


def client_of(transport: Any) -> str:
    """Return address and port of a transport's peer; "" for no transport and for a Unix domain socket."""
    peer = transport.get_extra_info("peername") if transport is not None else None
    return address_text(peer)


def address_text(peer: Any) -> str:
    """Return (host, port, …) as text, `127.0.0.1:50000` or `[::1]:50000`; "" for any other `peer`."""
    if not isinstance(peer, tuple | list) or len(peer) < 2:
        return ""
    host, port = peer[:2]
    return f"[{host}]:{port}" if ":" in str(host) else f"{host}:{port}"


def plain_path(target: str) -> str:
    """Return the target of a request line without query and fragment: a query may hold a secret."""
    return target.partition("?")[0].partition("#")[0]


def named_id(body: Buffer) -> str:
    """Return the `id` in the JSON of a request that was refused before it was read; "" if it is not found.

    Only the first MOST_SCANNED bytes are searched, so that a refusal stays cheap: clients write the id at
    the start. It is not found behind a member that is malformed or exceeds them.
    """
    rest = bytes(memoryview(body)[:MOST_SCANNED]).decode(errors="replace").lstrip()
    try:
        while rest[:1] in ("{", ","):
            key, rest = _value(rest[1:])
            if rest[:1] != ":":
                break
            value, rest = _value(rest[1:])
            if key == "id":
                return value if isinstance(value, str) else ""
    except (ValueError, RecursionError):  # not JSON, cut off, or nested deeply
        pass
    return ""


def _value(text: str) -> tuple[Any, str]:
    """Return the JSON value at the start of a text, and what follows it. Raises ValueError."""
    text = text.lstrip()
    value, end = _DECODER.raw_decode(text)
    return value, text[end:].lstrip()


def size_of(response: web.StreamResponse) -> int:
    """Return the size of a response's body in bytes; of a stream without Content-Length, that sent so far."""
    if isinstance(response, web.Response):
        body = response.body
        return len(body) if isinstance(body, bytes | bytearray) else 0
    return response.body_length if response.content_length is None else response.content_length
