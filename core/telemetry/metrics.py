"""Every metric of the server, collected when somebody asks.

Server.metrics ─► [collect] ─► frontends.metrics.  Nothing here runs for a request: the values are read
from the statistics of the model versions. Loop thread only.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING

from core.telemetry.families import Family, KindOfMetric, Sample
from core.telemetry.machine import machine
from core.telemetry.registry import registry

if TYPE_CHECKING:
    from core.caches import Cache
    from core.lifecycle import ModelVersion
    from core.server import Server

__all__ = ["SETTINGS", "Family", "collect", "registry"]

Read = Callable[["ModelVersion"], float]


def _microseconds(name: str) -> Read:
    def read(version: ModelVersion) -> float:
        return int(getattr(version.statistics, name).ns) // 1000

    return read


# name, help, value: a counter for each model version
_COUNTS: tuple[tuple[str, str, Read], ...] = (
    (
        "nv_inference_request_success",
        "Number of successful inference requests, all batch sizes",
        lambda version: version.statistics.success.count,
    ),
    (
        "nv_inference_count",
        "Number of inferences performed (does not include cached requests)",
        lambda version: version.statistics.inference_count,
    ),
    (
        "nv_inference_exec_count",
        "Number of model executions performed (does not include cached requests)",
        lambda version: version.statistics.execution_count,
    ),
)

# The same, turned off by --metrics-config=counter_latencies=false.
_LATENCIES: tuple[tuple[str, str, Read], ...] = (
    (
        "nv_inference_request_duration_us",
        "Cumulative inference request duration in microseconds (includes cached requests)",
        _microseconds("success"),
    ),
    (
        "nv_inference_queue_duration_us",
        "Cumulative inference queuing duration in microseconds (includes cached requests)",
        _microseconds("queue"),
    ),
    (
        "nv_inference_compute_input_duration_us",
        "Cumulative compute input duration in microseconds (does not include cached requests)",
        _microseconds("compute_input"),
    ),
    (
        "nv_inference_compute_infer_duration_us",
        "Cumulative compute inference duration in microseconds (does not include cached requests)",
        _microseconds("compute_infer"),
    ),
    (
        "nv_inference_compute_output_duration_us",
        "Cumulative inference compute output duration in microseconds "
        "(does not include cached requests)",
        _microseconds("compute_output"),
    ),
)

# Only of versions whose configuration asks for the response cache.
_CACHE: tuple[tuple[str, str, Read], ...] = (
    (
        "nv_cache_num_hits_per_model",
        "Number of cache hits per model",
        lambda version: version.statistics.cache_hit.count,
    ),
    (
        "nv_cache_num_misses_per_model",
        "Number of cache misses per model",
        lambda version: version.statistics.cache_miss.count,
    ),
)

_CACHE_LATENCIES: tuple[tuple[str, str, Read], ...] = (
    (
        "nv_cache_hit_duration_per_model",
        "Total cache hit duration per model, in microseconds",
        _microseconds("cache_hit"),
    ),
    (
        "nv_cache_miss_duration_per_model",
        "Total cache miss duration per model, in microseconds",
        _microseconds("cache_miss"),
    ),
)

_GAUGES: tuple[tuple[str, str, Read], ...] = (
    (
        "nv_inference_pending_request_count",
        "Instantaneous number of pending requests awaiting execution per-model.",
        lambda version: version.chain.pending,
    ),
    (
        "nv_model_load_duration_secs",
        "Model load time in seconds",
        lambda version: version.load_seconds,
    ),
)

SETTINGS = ("counter_latencies",)
"""Keys of --metrics-config that have an effect."""


def collect(server: Server) -> list[Family]:
    """Every family with its values of now: those of model versions, the machine, the models' own."""
    options = server.options
    versions = [version for version in server.versions() if version.state == "READY"]
    cached = [version for version in versions if version.config.response_cache.enable]
    with_latencies = options.metrics_config.get("counter_latencies", "true").lower() == "true"
    latencies, cache = (_LATENCIES, _CACHE + _CACHE_LATENCIES) if with_latencies else ((), _CACHE)
    families = [
        *_families("counter", _COUNTS, versions),
        _failures(versions),
        *_families("counter", latencies, versions),
        *_families("counter", cache, cached if options.cache_config else []),
        *_cache_families(server.cache),
        *_families("gauge", _GAUGES, versions),
        *_memory_pool(options.pinned_memory_pool_byte_size),
    ]
    if options.allow_cpu_metrics:
        families += machine.families(options.metrics_interval_ms / 1000)
    return families + registry.families()


def _families(
    kind: KindOfMetric, rows: Iterable[tuple[str, str, Read]], versions: Iterable[ModelVersion]
) -> list[Family]:
    labelled = [(_labels(version), version) for version in versions]
    return [
        Family(name, kind, text, [Sample(labels, read(version)) for labels, version in labelled])
        for name, text, read in rows
    ]


def _cache_families(cache: Cache | None) -> list[Family]:
    """Of the cache itself. Triton has none of these."""
    if cache is None:
        return []
    counters = cache.counters
    return [
        Family(f"core_cache_{name}", "counter", text, [Sample({}, value)])
        for name, text, value in (
            ("lookups", "Answers that the cache was asked for", counters.lookups),
            ("hits", "Answers that were in the cache", counters.hits),
            ("insertions", "Answers that the cache has kept", counters.insertions),
            ("evictions", "Answers that had to leave the cache for others", counters.evictions),
            ("failures", "Lookups and insertions that the cache could not do", counters.failures),
        )
    ]


def _failures(versions: Iterable[ModelVersion]) -> Family:
    return Family(
        "nv_inference_request_failure",
        "counter",
        "Number of failed inference requests, all batch sizes",
        [
            Sample({**_labels(version), "reason": reason}, count)
            for version in versions
            for reason, count in version.statistics.failures.items()
        ],
    )


def _labels(version: ModelVersion) -> dict[str, str]:
    """Labels of a version's samples; tags of its configuration start with an underscore."""
    tags = {f"_{key}": value for key, value in version.config.metric_tags.items()}
    if version.namespace is not None:
        tags["namespace"] = version.namespace
    return {**tags, "model": version.name, "version": str(version.version)}


def _memory_pool(size: int) -> list[Family]:
    """There is no pool of pinned memory; dashboards that were made for one find it unused."""
    return [
        Family(f"nv_pinned_memory_pool_{name}_bytes", "gauge", text, [Sample({}, value)])
        for name, text, value in (
            ("total", "Pinned memory pool total memory size, in bytes", size),
            ("used", "Pinned memory pool used memory size, in bytes", 0),
        )
    ]
