"""Every metric of the server, collected when somebody asks.

Server.metrics ─► [collect] ─► frontends.metrics.  Nothing here runs for a request: the values are read
from the statistics of the model versions. Loop thread only.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from core.telemetry.families import Family, Sample, new
from core.telemetry.labels import plus
from core.telemetry.metrics import latencies
from core.telemetry.metrics.catalog import family
from core.telemetry.metrics.latencies import Labelled
from core.telemetry.metrics.settings import MetricSettings
from core.telemetry.metrics.versions import labels_of, named
from core.telemetry.registry import registry

if TYPE_CHECKING:
    from core.account import MemoryAccount
    from core.caches import Cache
    from core.lifecycle import ModelVersion
    from core.server import Server

_PHASES = ("queue", "compute_input", "compute_infer", "compute_output")


def collect(server: Server) -> list[Family]:
    """Every family with its values of now: those of model versions, the machine, the models' own."""
    collecting = gc.isenabled()
    # Tens of thousands of samples of many models would call for a look at all objects of the process,
    # while none of them can be a cycle; the loop would stand for it.
    gc.disable()
    try:
        return _collected(server)
    finally:
        if collecting:
            gc.enable()


def _collected(server: Server) -> list[Family]:
    settings = MetricSettings.of(server.options.metrics_config)
    every = list(server.versions())
    ready = [version for version in every if version.state == "READY"]
    known = server.watch.labels.of(ready)
    plain = [(labels.plain, version) for labels, version in zip(known, ready, strict=True)]
    counted = [(labels.counted, version) for labels, version in zip(known, ready, strict=True)]
    cached = [
        each
        for each in counted
        if server.options.cache_config and each[1].config.response_cache.enable
    ]
    return [
        *_counters(counted, settings),
        *_cache_counters(cached, settings),
        *latencies.histograms(counted),
        *latencies.summaries(counted, cached, settings.quantiles),
        *_gauges(plain),
        *_own(plain, counted),
        *_of_loads(plain, every, server),
        *_memory_pool(),
        *server.watch.families(),
        *_request_memory(server.account),
        *_cache_families(server.cache),
        *registry.families(),
    ]


def _counters(counted: Labelled, settings: MetricSettings) -> list[Family]:
    found = [
        family(
            "nv_inference_request_success",
            _samples(counted, lambda version: version.statistics.success.count),
        ),
        family(
            "nv_inference_request_failure",
            [
                Sample(plus(labels, "reason", reason), count)
                for labels, version in counted
                for reason, count in version.statistics.failures.items()
            ],
        ),
        family(
            "nv_inference_count",
            _samples(counted, lambda version: version.statistics.inference_count),
        ),
        family(
            "nv_inference_exec_count",
            _samples(counted, lambda version: version.statistics.execution_count),
        ),
    ]
    if settings.counters:
        found.append(family("nv_inference_request_duration_us", _durations(counted, "success")))
        for name in _PHASES:
            found.append(family(f"nv_inference_{name}_duration_us", _durations(counted, name)))
    return found


def _cache_counters(cached: Labelled, settings: MetricSettings) -> list[Family]:
    found = []
    for name, plural in (("hit", "hits"), ("miss", "misses")):
        found.append(
            family(
                f"nv_cache_num_{plural}_per_model",
                [
                    Sample(labels, getattr(version.statistics, f"cache_{name}").count)
                    for labels, version in cached
                ],
            )
        )
        if settings.counters:
            samples = _durations(cached, f"cache_{name}")
            found.append(family(f"nv_cache_{name}_duration_per_model", samples))
    return found


def _gauges(plain: Labelled) -> list[Family]:
    return [
        family(
            "nv_inference_pending_request_count",
            _samples(plain, lambda version: version.chain.pending),
        ),
        family(
            "nv_model_load_duration_secs", _samples(plain, lambda version: version.load_seconds)
        ),
    ]


def _own(plain: Labelled, counted: Labelled) -> list[Family]:
    """What Triton does not tell of requests."""
    return [
        family(
            "core_inference_in_flight", _samples(plain, lambda version: version.chain.in_flight)
        ),
        family(
            "core_inference_pending_by_priority",
            [
                Sample(plus(labels, "priority", str(level)), count)
                for labels, version in plain
                for level, count in version.chain.pending_by_priority.items()
            ],
        ),
        family("core_inference_wait_estimate_seconds", _samples(plain, latencies.wait_estimate_s)),
        latencies.batch_sizes(counted),
    ]


def _of_loads(plain: Labelled, every: Iterable[ModelVersion], server: Server) -> list[Family]:
    """What Triton does not tell of models: whether they serve, and how their loads ended."""
    serving = [Sample(labels, int(version.chain.ready)) for labels, version in plain]
    missing = [
        Sample(labels_of(version), 0)
        for version in every
        if version.wanted and version.state != "READY"
    ]
    found = [family("core_model_ready", serving + missing)]
    results = server.results()
    for name in ("loads", "unloads"):
        samples = [
            Sample({**named(namespace, model), "result": result}, count)
            for namespace, model, counts in results
            for (what, result), count in counts.items()
            if what == name
        ]
        found.append(family(f"core_model_{name}", samples))
    return found


def _samples(labelled: Labelled, read: Callable[[ModelVersion], float]) -> list[Sample]:
    return [new(Sample, (labels, read(version), "")) for labels, version in labelled]


def _durations(labelled: Labelled, name: str) -> list[Sample]:
    """In whole microseconds."""
    return [
        new(Sample, (labels, getattr(version.statistics, name).ns // 1000, ""))
        for labels, version in labelled
    ]


def _request_memory(account: MemoryAccount) -> list[Family]:
    values = {
        "core_request_memory_bytes": account.held,
        "core_request_memory_limit_bytes": account.limit,
        "core_request_memory_unpaid_bytes": account.unpaid,
        "core_request_memory_refusals": account.refusals,
    }
    return [family(name, [Sample({}, value)]) for name, value in values.items()]


def _cache_families(cache: Cache | None) -> list[Family]:
    """Of the cache itself. Triton tells this of its local cache only."""
    if cache is None:
        return []
    counters = cache.counters
    values: dict[str, float] = {}
    fill = cache.fill()
    if fill is not None:
        entries, share = fill
        values = {
            "nv_cache_util": share,
            "nv_cache_num_entries": entries,
            "nv_cache_num_hits": counters.hits,
            "nv_cache_num_misses": counters.lookups - counters.hits,
            "nv_cache_num_lookups": counters.lookups,
            "nv_cache_num_evictions": counters.evictions,
            "nv_cache_lookup_duration": counters.lookup_ns // 1000,
            "nv_cache_insertion_duration": counters.insertion_ns // 1000,
        }
    for name in ("lookups", "hits", "insertions", "evictions", "failures"):
        values[f"core_cache_{name}"] = getattr(counters, name)
    return [family(name, [Sample({}, value)]) for name, value in values.items()]


def _memory_pool() -> list[Family]:
    """There is no pool of pinned memory: nothing is set aside, and nothing of it is used."""
    return [
        family(f"nv_pinned_memory_pool_{name}_bytes", [Sample({}, 0)]) for name in ("total", "used")
    ]
