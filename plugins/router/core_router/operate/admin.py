"""Admin: the port for operators.

GET /metrics, GET /servers, POST /servers/{name}/drain, …/resume ─► [Admin] ─► Server
GET /shares, PUT /shares ─────────────────────────────────────────┘
"""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any

import orjson
from aiohttp import web

from core.errors import CoreError
from core_router.choice.shares import Shares
from core_router.http.responses import error_body, json_body
from core_router.operate.metrics import metrics_text

if TYPE_CHECKING:
    from core_router.router import Router
    from core_router.servers.server import Server


class Admin:
    """An HTTP port of its own, so that clients of the router do not reach it. Event loop only."""

    def __init__(self, router: Router):
        self._router = router
        self._adding = asyncio.Lock()
        self._runner: web.AppRunner | None = None

    async def open(self, address: str, port: int) -> int:
        """Listen; return the port.

        Raises OSError if the address is in use, CoreError(INVALID) for certificates that cannot be used.
        """
        app = web.Application()
        app.add_routes(
            [
                web.get("/metrics", self._metrics),
                web.get("/servers", self._servers),
                web.post("/servers/{name}/drain", self._drain),
                web.post("/servers/{name}/resume", self._resume),
                web.get("/shares", self._shares),
                web.put("/shares", self._set_shares),
            ]
        )
        self._runner = web.AppRunner(app, access_log=None, handle_signals=False)
        await self._runner.setup()
        secure = self._router.listening(self._router.options.admin_certificates, "http/1.1")
        await web.TCPSite(self._runner, address, port, ssl_context=secure.get("ssl")).start()
        found: int = self._runner.addresses[0][1]
        return found

    async def close(self) -> None:
        """Close the port."""
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
        return _json([self._row(each) for each in self._router.table.servers.values()])

    async def _drain(self, request: web.Request) -> web.Response:
        return self._set_drained(request, True)

    async def _resume(self, request: web.Request) -> web.Response:
        return self._set_drained(request, False)

    def _set_drained(self, request: web.Request, is_drained: bool) -> web.Response:
        """Take a server out, or back in; requests in flight and open sequences are not touched."""
        table = self._router.table
        name = request.match_info["name"]
        server = table.servers.get(name)
        if server is None:
            known = ", ".join(table.servers) or "none"
            return _error(404, f"no server '{name}'; the servers are: {known}")
        if server.is_drained != is_drained:
            server.is_drained = is_drained
            table.changed()
        return _json(self._row(server))

    async def _shares(self, request: web.Request) -> web.Response:
        return _json(self._router.table.shares.percents)

    async def _set_shares(self, request: web.Request) -> web.Response:
        """Replace the shares by those of the body; requests from now on follow them."""
        table = self._router.table
        try:
            shares = Shares.of(orjson.loads(await request.read()))
        except orjson.JSONDecodeError as error:
            return _error(400, f"the body is not JSON: {error}")
        except CoreError as error:
            return _error(400, str(error))
        if unknown := sorted(shares.servers() - table.servers.keys()):
            known = ", ".join(table.servers) or "none"
            return _error(400, f"no server {', '.join(unknown)}; the servers are: {known}")
        table.shares = shares
        table.changed()
        return _json(shares.percents)

    def _row(self, server: Server) -> dict[str, Any]:
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
            "in_flight": server.in_flight,
            "sequences": self._router.sequences.count_of(server),
            "reports": bool(server.metrics),
            "connections": len(server.idle) + len(server.busy),
            "models": models,
        }


def _error(status: int, text: str) -> web.Response:
    return web.Response(status=status, body=error_body(text), content_type="application/json")


def _json(value: Any) -> web.Response:
    return web.Response(body=json_body(value), content_type="application/json")
