"""Passing: requests of the v2 protocol on the port for operators. The console tries and loads models by them.

request ─► [pass_on] ─► all servers, or the one that is chosen as for a client ─► its response, as it comes

One request is sent once: an operator sees what a server says, also if it refuses.
"""

from __future__ import annotations

import asyncio
import re
from time import monotonic
from typing import TYPE_CHECKING
from urllib.parse import unquote_to_bytes

import aiohttp
from aiohttp import web

from core_router.choice.choose import choose_on
from core_router.http.attempted_request import title_of
from core_router.http.heads import BadHead, request_head
from core_router.http.sequence_parameters import names_sequence, sequence_of
from core_router.http.targets import target_of
from core_router.operate.access import refused
from core_router.servers.tls import reason_of
from core_router.targets import Purpose

if TYPE_CHECKING:
    from core_router.choice.sequences import SequenceParameters
    from core_router.http.heads import RequestHead
    from core_router.operate.access import Access
    from core_router.router import Router
    from core_router.servers.server_model import ServerModel
    from core_router.servers.table import Route

LARGEST_BYTES = 64 << 20
"""Largest body of a request."""

_OF_ALL = (Purpose.EVERY, Purpose.INDEX, Purpose.STATISTICS)
# Purpose → category of its roles, and whether it is a change. For others, the path says it.
_NEEDS = {
    Purpose.EVERY: ("model-repository", True),
    Purpose.INDEX: ("model-repository", False),
    Purpose.STATISTICS: ("statistics", False),
    Purpose.INFERENCE: ("inference", True),
}
_MODEL = rb"/models/[^/]+(?:/versions/[^/]+)?"
_METADATA = re.compile(
    rb"/v2/?(?:openapi\.json|health/(?:live|ready))?|/v2" + _MODEL + rb"(?:/(?:config|ready))?"
)
_SETTINGS = re.compile(
    rb"/v2(?:/models|/logging|/(?:system|cuda)sharedmemory(?:/region/[^/]+)?/status|/trace/setting|"
    + _MODEL
    + rb"/(?:settings|traffic|trace/setting))"
)
_OF_CONNECTION = {"connection", "keep-alive", "content-length", "transfer-encoding", "upgrade"}


async def pass_on(router: Router, access: Access, request: web.Request) -> web.StreamResponse:
    """Answer with what the servers answer. Raises CoreError if the caller may not ask for it."""
    method, path = request.method.encode(), request.raw_path.encode("latin-1", "replace")
    bare = path.partition(b"?")[0]
    target = target_of(method, bare)
    access.check(request, *(_NEEDS.get(target.purpose) or _needs_of(method, bare)))
    lines = [b"%b: %b\r\n" % each for each in request.raw_headers]
    try:
        head = request_head(b"%b %b HTTP/1.1\r\n%b\r\n" % (method, path, b"".join(lines)))
    except BadHead as error:
        return refused(error.status, error.text)
    if head.upgrades:
        port = router.ports.http
        return refused(501, f"WebSockets and other upgrades pass on port {port} for clients only")
    body = await request.read()
    if target.purpose in _OF_ALL:
        asking = router.run(router.answer_of_all(target, head, body))
        # A change goes on without its caller: it must not end on some of the servers.
        is_change = target.purpose is Purpose.EVERY
        status, answer = await (asyncio.shield(asking) if is_change else asking)
        return web.Response(status=status, body=answer, content_type="application/json")
    route = router.table.route(target)
    sequence = None
    if target.purpose is Purpose.INFERENCE and (
        route.is_stateful or names_sequence(body, 0, head.json_size)
    ):
        size = len(body) if head.json_size < 0 else head.json_size
        # As for clients: parsing more would stop the event loop.
        if size <= (most := router.limits.kept_body_bytes):
            sequence = sequence_of(body, head.json_size)
        elif route.is_stateful:
            return refused(413, f"the body is larger than --kept-body-bytes={most}")
    chosen = _chosen(router, route, sequence)
    if chosen is None:
        failure = "" if sequence is None else router.sequences.failure(route, sequence)
        why = failure or router.table.status()
        return refused(503, f"no server takes {title_of(route)}; {why}")
    return await _answer_of(router, route, sequence, chosen, request, head, body)


def _needs_of(method: bytes, path: bytes) -> tuple[str, bool]:
    """Return the category of a request for one server, and whether its roles are those for changes.

    Routes that the router does not know count as changes: one may show what clients have sent.
    """
    path = unquote_to_bytes(path)
    reads = method in (b"GET", b"HEAD")
    if reads and _METADATA.fullmatch(path):
        return "metadata", False
    return "model-repository", not (reads and _SETTINGS.fullmatch(path))


def _chosen(
    router: Router, route: Route, sequence: SequenceParameters | None
) -> ServerModel | None:
    now_s = monotonic()
    if sequence is None:
        return choose_on(route, (), now_s)
    return router.sequences.choose(route, sequence, (), now_s)


async def _answer_of(
    router: Router,
    route: Route,
    sequence: SequenceParameters | None,
    chosen: ServerModel,
    request: web.Request,
    head: RequestHead,
    body: bytes,
) -> web.StreamResponse:
    """Send the request to a server; the model there counts it as those of clients."""
    begun_s = monotonic()
    chosen.begin()
    response = None
    try:
        async with router.servers.send(chosen.server, head, body) as answer:
            response = web.StreamResponse(status=answer.status)
            for name, value in answer.headers.items():
                if name.lower() not in _OF_CONNECTION:
                    response.headers.add(name, value)
            await response.prepare(request)
            async for piece in answer.content.iter_any():
                await response.write(piece)
    except (asyncio.CancelledError, ConnectionResetError):
        chosen.left()  # the caller has gone
        raise
    except (aiohttp.ClientError, OSError, asyncio.TimeoutError) as error:
        chosen.failed(monotonic())
        if sequence is not None:
            router.sequences.lost(route.target.model, sequence)
        if response is not None:
            raise  # the caller must not take a part for the whole
        return refused(502, f"server {chosen.server.name}: {reason_of(error)}")
    now_s = monotonic()
    chosen.done(response.status, now_s - begun_s, now_s)
    if sequence is not None:
        router.sequences.answered(route.target.model, sequence, response.status < 400)
    if response.status in (404, 503):
        chosen.server.checks_now.set()  # its index may have changed
    await response.write_eof()
    return response
