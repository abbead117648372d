"""Observations of HTTP requests, on aiohttp and on the fast path (frontends/shared/call_observers.py)."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from frontends.http.access_log import client_of
from frontends.http.aiohttp_connection import connection_of
from frontends.http.aiohttp_web import web
from frontends.http.message import HttpRequest, HttpResponse, Parts
from frontends.shared.access_log import GONE
from frontends.shared.call_observers import CallObservation, ObservedCall

if TYPE_CHECKING:
    from frontends.shared.access import ActiveCall

Begin = Callable[[ObservedCall], "CallObservation | None"]


def observe(
    begin: Begin, protocol: str, category: str, request: web.BaseRequest, call: HttpRequest
) -> None:
    """Set `call.observation` for a request on aiohttp whose body has been read, if an observer wants it.

    The observation gets the body at once.
    """
    version = request.version
    start = f"{request.method} {request.raw_path} HTTP/{version.major}.{version.minor}"
    lines = [start.encode("utf-8", "surrogateescape")]
    lines += [b"%b: %b" % field for field in request.raw_headers]
    call.observation = begin(
        ObservedCall(
            protocol,
            b"\r\n".join(lines) + b"\r\n",
            category,
            call.captures.get("model") or "",
            call.captures.get("version") or "",
            client_of(request.transport),
            _name(connection_of(request).active),
        )
    )
    if call.observation is not None:
        call.observation.receive(call.body)


def watched(call: HttpRequest | None, answer: HttpResponse) -> HttpResponse:
    """Pass the body of a response to the observation of its request, if it has one.

    Return the response to send: its parts pass the observation, too.

    call   None for a request that reached no service
    """
    if call is None or (observation := call.observation) is None:
        return answer
    observation.send(answer.body)
    if answer.more is None:
        return answer
    return replace(answer, more=_ObservedParts(answer.more, observation))


def end(call: HttpRequest | None, response: web.StreamResponse | None) -> None:
    """End the observation of a request, if it has one, with status and head of the response.

    response   None if it was not sent to its end: the client has disconnected, or a later part failed
    """
    if call is None or (observation := call.observation) is None:
        return
    if response is None:
        observation.end(GONE, b"")
        return
    fields = "".join(f"{name}: {value}\r\n" for name, value in response.headers.items())
    start = f"HTTP/1.1 {response.status} {response.reason}\r\n"
    observation.end(response.status, (start + fields).encode("utf-8", "surrogateescape"))


class _ObservedParts:
    """Parts of a body that an observation gets, too. They cannot be pushed (message.PushedParts)."""

    def __init__(self, parts: Parts, observation: CallObservation):
        self._parts = parts
        self._observation = observation

    def __aiter__(self) -> _ObservedParts:
        self._iterator = aiter(self._parts)
        return self

    async def __anext__(self) -> bytes:
        part = await anext(self._iterator)
        self._observation.send(part)
        return part

    async def aclose(self) -> None:
        await self._parts.aclose()


# the fast path --------------------------------------------------------------------------


def observe_head(
    begin: Begin,
    head: bytes,
    model: str,
    version: int,
    transport: Any,
    active: ActiveCall | None,
    body: Any,
) -> CallObservation | None:
    """Return the observation of a fast-path request, which has got `body`; None if no observer wants it.

    head      as received, with the empty line at its end
    version   of the model; negative if the path has none
    """
    observation = begin(
        ObservedCall(
            "http",
            head[:-2],
            "inference",
            model,
            "" if version < 0 else str(version),
            client_of(transport),
            _name(active),
        )
    )
    if observation is not None:
        observation.receive(body)
    return observation


def end_of_fast(observation: CallObservation, answer: bytes | Sequence[Any] | None) -> None:
    """Pass the body of a fast-path response to an observation, and end it.

    answer   bytes, or buffers of which the first begins with the whole head; None if the client has
             disconnected
    """
    if answer is None:
        observation.end(GONE, b"")
        return
    parts: Sequence[Any] = [answer] if isinstance(answer, bytes) else answer
    first: bytes = parts[0]
    size = first.find(b"\r\n\r\n") + 4
    observation.send([memoryview(first)[size:], *parts[1:]])
    observation.end(int(first[9:12]), first[: size - 2])


def _name(active: ActiveCall | None) -> str:
    caller = None if active is None else active.caller
    return caller.name if caller is not None and caller.known else ""
