"""Admin: the port for operators.

GET /metrics, GET /servers, POST /servers/{name}/drain, …/resume ─► [Admin] ─► Server
GET /shares, PUT /shares ─────────────────────────────────────────┘
GET /console/… ─► Console;  /v2/… for its page ─► pass_on ─► servers
"""

from __future__ import annotations

import asyncio
from functools import partial
from typing import TYPE_CHECKING, Any

import orjson
from aiohttp import web

from core.errors import CoreError
from core_router.choice.shares import Shares
from core_router.http.responses import json_body
from core_router.operate.access import Access, refused
from core_router.operate.console import Console, page_of
from core_router.operate.host_names import HostNames
from core_router.operate.metrics import metrics_text
from core_router.operate.passing import LARGEST_BYTES, pass_on

if TYPE_CHECKING:
    from core_router.router import Router
    from core_router.servers.server import Server


_GOODBYE_S = 2.0  # at the end, for callers that do not read
_CHANGE = ("model-repository", True)  # what operators with the role `manage` may do


class Admin:
    """An HTTP port of its own, so that clients of the router do not reach it. Event loop only.

    console   None without the page
    """

    def __init__(self, router: Router):
        self.console: Console | None = None
        self._router = router
        self._adding = asyncio.Lock()
        self._runner: web.AppRunner | None = None

    async def open(self, address: str, port: int) -> int:
        """Listen; return the port.

        Raises OSError if the address is in use, CoreError(INVALID) for certificates or a file of tokens that
        cannot be used.
        """
        router, options = self._router, self._router.options
        names = None if options.admin_certificates else HostNames(address, options.admin_hosts)
        access = Access(options.admin_tokens, router.files, names)
        guarded = access.guarded
        app = web.Application(client_max_size=LARGEST_BYTES)
        app.add_routes(
            [
                web.get("/metrics", guarded(self._metrics, "metrics")),
                web.get("/servers", guarded(self._servers, "statistics")),
                web.post("/servers/{name}/drain", guarded(self._drain, *_CHANGE)),
                web.post("/servers/{name}/resume", guarded(self._resume, *_CHANGE)),
                web.get("/shares", guarded(self._shares, "statistics")),
                web.put("/shares", guarded(self._set_shares, *_CHANGE)),
            ]
        )
        if (page := page_of(router)) is not None:
            self.console = Console(router, access, page)
            app.add_routes(self.console.routes())
            passing = guarded(partial(pass_on, router, access))
            app.router.add_route("*", "/v2/{path:.*}", passing)
        self._runner = web.AppRunner(
            app,
            access_log=None,
            handle_signals=False,
            shutdown_timeout=_GOODBYE_S,
            handler_cancellation=True,  # a caller that leaves ends its request
            auto_decompress=False,  # compressed bodies pass to the servers as they are
        )
        await self._runner.setup()
        secure = router.listening(options.admin_certificates, "http/1.1")
        await web.TCPSite(self._runner, address, port, ssl_context=secure.get("ssl")).start()
        found: int = self._runner.addresses[0][1]
        return found

    async def close(self) -> None:
        """Close the port."""
        if self.console is not None:
            self.console.close()
        if self._runner is not None:
            await self._runner.cleanup()

    async def _metrics(self, request: web.Request) -> web.Response:
        """Return the metrics of the router, and those of its servers as they were read last."""
        async with self._adding:
            of_servers = self._router.servers.metrics
            for each in list(self._router.table.servers.values()):
                if not each.is_removed:  # meanwhile
                    for _ in of_servers.add(each.name, each.metrics):
                        await asyncio.sleep(0)  # requests go on
            own = metrics_text(self._router).encode()
            body = b"".join([own, *of_servers.text()])
        return web.Response(body=body, content_type="text/plain", charset="utf-8")

    async def _servers(self, request: web.Request) -> web.Response:
        pins = self._router.sequences.by_server()
        servers = self._router.table.servers.values()
        return _json([self._row(each, pins[each.name]) for each in servers])

    async def _drain(self, request: web.Request) -> web.Response:
        return self._set_drained(request, True)

    async def _resume(self, request: web.Request) -> web.Response:
        return self._set_drained(request, False)

    def _set_drained(self, request: web.Request, is_drained: bool) -> web.Response:
        table = self._router.table
        name = request.match_info["name"]
        server = table.servers.get(name)
        if server is None:
            known = ", ".join(table.servers) or "none"
            return refused(404, f"no server '{name}'; the servers are: {known}")
        self._router.servers.set_drained(server, is_drained)
        return _json(self._row(server, self._router.sequences.by_server()[name]))

    async def _shares(self, request: web.Request) -> web.Response:
        return _json(self._router.table.shares.percents)

    async def _set_shares(self, request: web.Request) -> web.Response:
        """Replace the shares by those of the body; requests from now on follow them."""
        table = self._router.table
        try:
            shares = Shares.of(orjson.loads(await request.read()))
        except orjson.JSONDecodeError as error:
            return refused(400, f"the body is not JSON: {error}")
        except CoreError as error:
            return refused(400, str(error))
        if unknown := sorted(shares.servers() - table.servers.keys()):
            known = ", ".join(table.servers) or "none"
            return refused(400, f"no server {', '.join(unknown)}; the servers are: {known}")
        table.shares = shares
        table.changed()
        return _json(shares.percents)

    def _row(self, server: Server, sequences: int) -> dict[str, Any]:
        """Return what is known of a server."""
        models = {
            name: {
                "versions": sorted(each.versions),
                "in_flight": each.in_flight,
                "mean_ms": round(each.latency_s * 1e3, 3),
                "wait_ms": round(each.wait_s * 1e3, 3),
                "ejected": each.ejected_until > self._router.now_s,
            }
            for name, each in sorted(server.models.items())
        }
        return {
            "name": server.name,
            "state": server.state.value,
            "reason": server.reason,
            "drained": server.is_drained,
            "since_s": round(self._router.servers.since_s(server), 3),
            "in_flight": server.in_flight,
            "sequences": sequences,
            "reports": bool(server.metrics),
            "announces": self._router.servers.announces(server),
            "connections": len(server.idle) + len(server.busy),
            "models": models,
        }


def _json(value: Any) -> web.Response:
    return web.Response(body=json_body(value), content_type="application/json")
