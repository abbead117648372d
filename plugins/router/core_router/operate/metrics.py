"""metric_families: the router's metrics, in the form of core's."""

from __future__ import annotations

from itertools import accumulate
from typing import TYPE_CHECKING

from core.telemetry.families import Family, Sample
from core_router.servers.server import State
from core_router.servers.server_model import BUCKETS_S

if TYPE_CHECKING:
    from core_router.router import Router
    from core_router.servers.server_model import ServerModel


def metric_families(router: Router) -> list[Family]:
    """Return all families. Those of a server end when it leaves the list."""
    servers = list(router.table.servers.values())
    used = [
        each
        for server in servers
        for each in (server.any_model, *server.models.values())
        if any(each.statuses) or each.lost or each.in_flight
    ]
    return [
        _family(
            "core_router_responses",
            "counter",
            "Complete responses of servers, by the class of their status",
            [
                Sample({**_labels(each), "status": f"{digit}xx"}, count)
                for each in used
                for digit, count in enumerate(each.statuses)
                if count
            ],
        ),
        _family(
            "core_router_lost",
            "counter",
            "Attempts whose connection failed or ended before the response",
            [Sample(_labels(each), each.lost) for each in used],
        ),
        _family(
            "core_router_response_seconds",
            "histogram",
            "Seconds from an attempt to the end of its response, without statuses 5xx",
            [sample for each in used for sample in _histogram(each)],
        ),
        _family(
            "core_router_in_flight",
            "gauge",
            "Requests without a response",
            [Sample(_labels(each), each.in_flight) for each in used],
        ),
        _family(
            "core_router_ejections",
            "counter",
            "Times that a server was avoided after failures in a row",
            [Sample(_labels(each), each.ejections) for each in used],
        ),
        _family(
            "core_router_server_ready",
            "gauge",
            "Whether a server is ready and takes new requests",
            [
                Sample(
                    {"server": each.name}, int(each.state is State.READY and not each.is_drained)
                )
                for each in servers
            ],
        ),
        _family(
            "core_router_server_connections",
            "gauge",
            "Open connections to a server",
            [Sample({"server": each.name}, len(each.idle) + len(each.busy)) for each in servers],
        ),
        _family(
            "core_router_retries",
            "counter",
            "Further attempts of requests, by what the attempt before met",
            [Sample({"reason": name}, count) for name, count in router.metrics.retries.items()],
        ),
        _family(
            "core_router_refused",
            "counter",
            "Requests that no server took",
            [Sample({}, router.metrics.refused)],
        ),
        _family(
            "core_router_clients",
            "gauge",
            "Open connections of clients",
            [Sample({}, len(router.clients))],
        ),
        _family(
            "core_router_connections",
            "counter",
            "Connections that clients have opened",
            [Sample({}, router.metrics.connections)],
        ),
        _family(
            "core_router_sequences", "gauge", "Open sequences", [Sample({}, len(router.sequences))]
        ),
        _family(
            "core_router_kept_bytes",
            "gauge",
            "Bytes of bodies that are kept for another attempt",
            [Sample({}, router.kept_bytes)],
        ),
    ]


def _family(name: str, kind: str, text: str, samples: list[Sample]) -> Family:
    return Family(name, kind, text, samples)  # type: ignore[arg-type]


def _labels(each: ServerModel) -> dict[str, str]:
    return {"server": each.server.name, "model": each.name}


def _histogram(each: ServerModel) -> list[Sample]:
    labels, counts = _labels(each), list(accumulate(each.buckets))
    bounds = [*map(str, BUCKETS_S), "+Inf"]
    return [
        *(
            Sample({**labels, "le": bound}, count, "_bucket")
            for bound, count in zip(bounds, counts, strict=True)
        ),
        Sample(labels, counts[-1], "_count"),
        Sample(labels, each.total_s, "_sum"),
    ]
