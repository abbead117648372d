"""metrics_text: the router's metrics in the text format of Prometheus.

A writer of its own: core's would import numpy, which nothing else of the router needs.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from itertools import accumulate
from typing import TYPE_CHECKING, NamedTuple

from core_router.servers.server_model import BUCKETS_S

if TYPE_CHECKING:
    from core_router.router import Router
    from core_router.servers.server import Server
    from core_router.servers.server_model import ServerModel


class _Sample(NamedTuple):
    labels: Mapping[str, str]
    value: float
    suffix: str = ""


def metrics_text(router: Router) -> str:
    """Return all metrics. Of a server that has left the list, only its counts stay."""
    servers = list(router.table.servers.values())
    models = [
        each
        for server in servers
        for each in (server.any_model, *server.models.values())
        if any(each.statuses) or each.lost or each.in_flight
    ]
    models += router.servers.left
    return "".join([*_of_models(models), *_of_servers(servers), *_of_router(router)])


def _of_models(models: list[ServerModel]) -> Iterable[str]:
    yield _family(
        "core_router_responses",
        "counter",
        "Complete responses of servers, by the class of their status",
        [
            _Sample({**_labels(each), "status": f"{digit}xx"}, count)
            for each in models
            for digit, count in enumerate(each.statuses)
            if count
        ],
    )
    yield _family(
        "core_router_response_seconds",
        "histogram",
        "Seconds from an attempt to the end of its response, without statuses 5xx",
        [sample for each in models for sample in _histogram(each)],
    )
    yield _family(
        "core_router_wait_seconds",
        "gauge",
        "Estimated wait for requests of others at a server, by its last load report",
        [
            _Sample(_labels(each), each.wait_s)
            for each in models
            if each.server.metrics and each.name and not each.server.is_removed
        ],
    )
    for name, kind, text, values in (
        ("lost", "counter", "Attempts without a complete response", [each.lost for each in models]),
        ("in_flight", "gauge", "Requests without a response", [each.in_flight for each in models]),
        (
            "ejections",
            "counter",
            "Times that a server was avoided after failures in a row",
            [each.ejections for each in models],
        ),
    ):
        samples = [
            _Sample(_labels(each), value) for each, value in zip(models, values, strict=True)
        ]
        yield _family(f"core_router_{name}", kind, text, samples)


def _of_servers(servers: list[Server]) -> Iterable[str]:
    ready = [each.takes_requests for each in servers]
    names = [{"server": each.name} for each in servers]
    yield _family(
        "core_router_server_ready",
        "gauge",
        "Whether a server is ready and not drained",
        [_Sample(name, value) for name, value in zip(names, ready, strict=True)],
    )
    yield _family(
        "core_router_server_connections",
        "gauge",
        "Open connections to a server",
        [_Sample({"server": each.name}, len(each.idle) + len(each.busy)) for each in servers],
    )


def _of_router(router: Router) -> Iterable[str]:
    counts = router.metrics
    yield _family(
        "core_router_retries",
        "counter",
        "Further attempts of requests, by what the attempt before met",
        [_Sample({"reason": name}, count) for name, count in counts.retries.items()],
    )
    hedging = router.hedging
    copies = [("hedges", hedging.sent), ("hedges_won", hedging.won)] if hedging is not None else []
    texts = {"hedges": "Second copies of requests", "hedges_won": "Those that answered first"}
    for name, count in copies:
        yield _family(f"core_router_{name}", "counter", texts[name], [_Sample({}, count)])
    for name, kind, text, value in (
        ("refused", "counter", "Requests that no server took", counts.refused),
        ("clients", "gauge", "Open connections of clients", len(router.clients)),
        ("connections", "counter", "Connections that clients have opened", counts.connections),
        ("sequences", "gauge", "Open sequences", len(router.sequences)),
        (
            "kept_bytes",
            "gauge",
            "Bytes of bodies that are kept for another attempt",
            router.kept_bytes,
        ),
    ):
        yield _family(f"core_router_{name}", kind, text, [_Sample({}, value)])


def _labels(each: ServerModel) -> dict[str, str]:
    return {"server": each.server.name, "model": each.name}


def _histogram(each: ServerModel) -> list[_Sample]:
    labels, counts = _labels(each), list(accumulate(each.buckets))
    bounds = [*map(str, BUCKETS_S), "+Inf"]
    return [
        *(
            _Sample({**labels, "le": bound}, count, "_bucket")
            for bound, count in zip(bounds, counts, strict=True)
        ),
        _Sample(labels, counts[-1], "_count"),
        _Sample(labels, each.total_s, "_sum"),
    ]


def _family(name: str, kind: str, text: str, samples: list[_Sample]) -> str:
    """Return the lines of a family; none without samples."""
    if not samples:
        return ""
    lines = [f"# HELP {name} {text}", f"# TYPE {name} {kind}"]
    for labels, value, suffix in samples:
        pairs = ",".join(f'{key}="{_escaped(label)}"' for key, label in labels.items())
        lines.append(f"{name}{suffix}{'{' + pairs + '}' if pairs else ''} {_number(value)}")
    return "\n".join([*lines, ""])


def _number(value: float) -> str:
    return str(int(value)) if value == int(value) else repr(value)


def _escaped(text: str) -> str:
    return text.replace("\\", r"\\").replace("\n", r"\n").replace('"', r"\"")
