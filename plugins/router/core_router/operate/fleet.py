"""Fleet: what the console shows of a router: its servers, the models on all of them, and its own counts.

ServerTable, Counts ─► [Fleet.look] ─► rows of models and servers, as values for JSON

The rows have counters, which the path of a request counts anyway. The page computes rates and quantiles.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable, Sequence
from time import monotonic
from typing import TYPE_CHECKING, Any

from core_router.servers.server_model import BUCKETS_S

if TYPE_CHECKING:
    from core_router.router import Router
    from core_router.servers.server import Server
    from core_router.servers.server_model import ServerModel

Row = dict[str, Any]

_AT_ONCE = 10  # models after which requests go on; each may be on many servers
_BOUNDS_US = [round(bound * 1e6) for bound in BUCKETS_S]


class Fleet:
    """Looks at one router. Event loop only."""

    def __init__(self, router: Router):
        self._router = router

    async def look(self) -> dict[str, Any]:
        """Return the state of now. Requests go on meanwhile: two numbers may be of different moments.

        rows     models that are ready on a server: version 0 stands for all versions on all servers
        idle     the other models of the servers' indexes
        servers  each server, in the order of their names
        router   counts of the router itself
        """
        now_s = monotonic()
        pins = self._router.sequences.by_server()
        servers = sorted(self._router.table.servers.values(), key=lambda each: each.name)
        rows, idle, server_rows = [], [], []
        for each in servers:
            await asyncio.sleep(0)
            if not each.is_removed:  # meanwhile
                server_rows.append(self._server_row(each, pins[each.name], now_s))
        for at, name in enumerate(sorted({name for each in servers for name in each.models})):
            if at % _AT_ONCE == 0:
                await asyncio.sleep(0)
            found = [model for each in servers if (model := each.models.get(name)) is not None]
            if any(each.versions for each in found):
                rows.append(_model_row(name, found, now_s))
            else:
                idle.append({"model": name, "reason": ""})
        return {
            "rows": rows,
            "idle": idle,
            "servers": server_rows,
            "router": self._own(),
        }

    def _server_row(self, server: Server, sequences: int, now_s: float) -> Row:
        models = server.models.values()
        return {
            "name": server.name,
            "state": server.state.name,
            "reason": server.reason,
            "drained": server.is_drained,
            "since_ms": round(self._router.servers.since_s(server) * 1000),
            "sequences": sequences,
            "connections": len(server.idle) + len(server.busy),
            "reports": bool(server.metrics),
            "models": sum(bool(each.versions) for each in models),
            "ejected": [each.name for each in models if each.ejected_until > now_s],
            "wait_s": max((each.wait_s for each in models), default=0.0),
            **_counted([server.any_model, *models]),
        }

    def _own(self) -> dict[str, Any]:
        router = self._router
        hedging = router.hedging
        return {
            "retries": dict(router.metrics.retries),
            "refused": router.metrics.refused,
            "hedges": None if hedging is None else {"sent": hedging.sent, "won": hedging.won},
            "sequences": len(router.sequences),
            "clients": len(router.clients),
            "kept_bytes": router.kept_bytes,
            "bounds_us": _BOUNDS_US,
            "shares": router.table.shares.percents,
        }


def _model_row(name: str, models: Sequence[ServerModel], now_s: float) -> Row:
    there = [each for each in models if each.versions and each.server.takes_requests]
    out = [each.server.name for each in models if each.versions and each not in there]
    return {
        "model": name,
        "version": 0,
        "versions": _ordered({version for each in there for version in each.versions}),
        "state": "READY" if there else "UNAVAILABLE",
        "reason": "" if there else f"no server takes requests for it; it is on {', '.join(out)}",
        "stateful": any(each.is_stateful for each in models),
        "decoupled": any(each.is_decoupled for each in models),
        "wait_s": min((each.wait_s for each in there), default=0.0),
        "servers": [_place(each, now_s) for each in models],
        **_counted(models),
    }


def _place(model: ServerModel, now_s: float) -> Row:
    """Return what is known of a model on one server."""
    return {
        "name": model.server.name,
        "takes": bool(model.versions) and model.server.takes_requests,
        "versions": _ordered(model.versions),
        "ok": sum(model.statuses[2:5]),
        "failed": model.statuses[5] + model.lost,
        "flight": model.in_flight,
        "mean_s": round(model.latency_s, 6),
        "wait_s": round(model.wait_s, 4) if model.server.metrics else None,
        "ejected": model.ejected_until > now_s,
    }


def _counted(models: Iterable[ServerModel]) -> Row:
    """Return the sums of the counters: a status 5xx and a lost connection are failures."""
    ok = failed = flight = 0
    total_s, buckets = 0.0, [0] * (len(BUCKETS_S) + 1)
    for each in models:
        flight += each.in_flight
        failed += each.statuses[5] + each.lost
        if answered := sum(each.statuses[2:5]):
            ok += answered
            total_s += each.total_s
            buckets = [a + b for a, b in zip(buckets, each.buckets, strict=True)]
    return {
        "ok": ok,
        "failed": failed,
        "flight": flight,
        "pending": 0,  # how many wait at a server, the router does not know
        "total_ns": round(total_s * 1e9),
        "buckets": buckets,
    }


def _ordered(versions: Iterable[str]) -> list[str]:
    return sorted(versions, key=lambda each: (not each.isdecimal(), each.zfill(20)))
