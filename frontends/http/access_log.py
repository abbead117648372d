"""Lines of the access log for what aiohttp answers (--access-log); the fast lane has its own
(native/recorder.pyx)."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from json import JSONDecoder
from typing import Any, Protocol

from core.telemetry.tracing import Trace
from core.tensor import Buffer
from frontends.aiohttp_web import web
from frontends.http.message import Call
from frontends.shared.access_log import GONE, AccessLog, Entry


def _key(name: str) -> Any:
    """Where a request of aiohttp keeps something; newer versions warn of texts."""
    made = getattr(web, "RequestKey", None)
    return name if made is None else made(name, object)


CALL = _key("core.call")  # the Call that was made of it
CALLER = _key("core.caller")  # and who sent it, where a gate has asked

MOST_SCANNED = 4096  # bytes of a refused body in which its id is looked for
_DECODER = JSONDecoder()

Handler = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


class Names(Protocol):
    """Knows the model and the version that a path names."""

    def captures(self, method: str, path: str) -> Mapping[str, Any]: ...


def recorded(handler: Handler, access: AccessLog, names: Names) -> Handler:
    """`handler`, each request of which has a line."""

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        entry = Entry(
            "http", client_of(request.transport), plain_path(request.raw_path), request.method
        )
        entry.belong(request.headers.get("traceparent", ""))
        try:
            response = await handler(request)
        except asyncio.CancelledError:
            _write(access, names, entry, request, GONE, 0)
            raise
        except web.HTTPException as error:
            _write(access, names, entry, request, error.status, 0)
            raise
        except ConnectionError:
            _write(access, names, entry, request, GONE, 0)
            raise
        _write(access, names, entry, request, response.status, _size(response))
        return response

    return handle


def write_malformed(
    access: AccessLog, request: web.BaseRequest, status: int, response: web.StreamResponse
) -> None:
    """The line of what is no HTTP, or of a handler that failed."""
    entry = Entry(
        "http", client_of(request.transport), plain_path(request.raw_path), request.method
    )
    access.write(entry, status, _size(response))


def client_of(transport: Any) -> str:
    """Address and port behind a transport, "" for none and for a Unix domain socket's."""
    peer = transport.get_extra_info("peername") if transport is not None else None
    return address_text(peer)


def address_text(peer: Any) -> str:
    """`127.0.0.1:50000`, `[::1]:50000`; "" for what is no address."""
    if not isinstance(peer, tuple | list) or len(peer) < 2:
        return ""
    host, port = peer[:2]
    return f"[{host}]:{port}" if ":" in str(host) else f"{host}:{port}"


def plain_path(target: str) -> str:
    """The target of a request line without its query, which may hold a secret."""
    return target.partition("?")[0].partition("#")[0]


def _write(
    access: AccessLog,
    names: Names,
    entry: Entry,
    request: web.BaseRequest,
    status: int,
    bytes_out: int,
) -> None:
    entry.come_from(request.get(CALLER))
    call: Call | None = request.get(CALL)
    named = names.captures(entry.method, entry.path) if call is None else call.captures
    entry.model = named.get("model") or ""
    entry.version = named.get("version") or ""
    if call is not None:
        entry.bytes_in = len(call.body)
        if (asked := call.asked) is None:
            entry.id = named_id(call.body)
        else:
            entry.id = asked.id
            if isinstance(asked.trace, Trace) and asked.trace.root is not None:
                entry.trace = f"{asked.trace.root.trace_id:032x}"
    access.write(entry, status, bytes_out)


def named_id(body: Buffer) -> str:
    """Return the `id` of a request that was refused before it was read; "" if it is not easy to find.

    Only the first bytes are read, so that a refusal stays cheap: clients write the id at the start.
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
    except (ValueError, RecursionError):  # no JSON, cut off, or nested deeply
        pass
    return ""


def _value(text: str) -> tuple[Any, str]:
    """Return the JSON value at the start of a text, and what follows it. Raises ValueError."""
    text = text.lstrip()
    value, end = _DECODER.raw_decode(text)
    return value, text[end:].lstrip()


def _size(response: web.StreamResponse) -> int:
    """Bytes of the body; of one that was sent in pieces, what was sent."""
    if isinstance(response, web.Response):
        body = response.body
        return len(body) if isinstance(body, bytes | bytearray) else 0
    return response.body_length if response.content_length is None else response.content_length
