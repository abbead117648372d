"""Every metric of the server, collected for each scrape.

HealthControl.metrics ─► [MetricCollector] ─► families.  Nothing here runs for a request: the values are read
from the statistics of the model versions.
"""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterable, Mapping
from operator import attrgetter

from core.caches import Cache
from core.control.metrics import latencies
from core.control.metrics.latencies import Labelled
from core.control.metrics.versions import labels_of, named
from core.control.metrics.watch import Watch
from core.devices import pools
from core.lifecycle import ModelManager, ModelVersion
from core.options import Options
from core.system.account import MemoryAccount
from core.telemetry.families import Family, Sample, new
from core.telemetry.labels import plus
from core.telemetry.metrics.catalog import family
from core.telemetry.metrics.settings import MetricSettings
from core.telemetry.registry import registry

Results = Iterable[tuple[str | None, str, Mapping[tuple[str, str], int]]]
"""For each model: namespace, name, and the number of its loads and unloads by result."""

_PINNED = ("nv_pinned_memory_pool_total_bytes", "nv_pinned_memory_pool_used_bytes")
_PHASES = ("queue", "compute_input", "compute_infer", "compute_output")


class MetricCollector:
    """Collects the metrics of this process. Not thread-safe: call from the event loop only.

    watch     measures machine and process, and has the sources of plugins
    account   memory account of the requests
    cache     response cache, None if there is none
    """

    def __init__(
        self,
        options: Options,
        manager: ModelManager,
        watch: Watch,
        account: MemoryAccount,
        cache: Cache | None,
    ):
        self._settings = MetricSettings.of(options.metrics_config)
        self._manager = manager
        self._watch = watch
        self._account = account
        self._cache = cache

    def collect(self) -> list[Family]:
        """Return every family with its values of now: of versions, cache, machine, plugins, models' code."""
        collecting = gc.isenabled()
        # Tens of thousands of samples of many models would start the garbage collector, which stops
        # the event loop; none of them can be a cycle.
        gc.disable()
        try:
            return self._collected()
        finally:
            if collecting:
                gc.enable()

    def _collected(self) -> list[Family]:
        every = list(self._manager.versions())
        ready = [version for version in every if version.state == "READY"]
        known = self._watch.labels.of(ready)
        plain = [(labels.plain, version) for labels, version in zip(known, ready, strict=True)]
        counted = [(labels.counted, version) for labels, version in zip(known, ready, strict=True)]
        cached = [
            each
            for each in counted
            if self._cache is not None and each[1].config.response_cache.enable
        ]
        return [
            *_counters(counted, self._settings),
            *_cache_counters(cached, self._settings),
            *latencies.histograms(counted),
            *latencies.summaries(counted, cached, self._settings.quantiles),
            *_gauges(plain),
            latencies.batch_sizes(counted),
            *_of_loads(plain, every, self._manager.results()),
            *_of_server(dict(zip(_PINNED, pools.current().pinned_bytes(), strict=True))),
            *self._watch.families(),
            *_of_server(
                {
                    "core_request_memory_bytes": self._account.held,
                    "core_request_memory_limit_bytes": self._account.limit,
                    "core_request_memory_unpaid_bytes": self._account.unpaid,
                    "core_request_memory_refusals": self._account.refusals,
                }
            ),
            *_cache_families(self._cache),
            *registry.families(),
        ]


def _counters(counted: Labelled, settings: MetricSettings) -> list[Family]:
    found = [
        _family("nv_inference_request_success", counted, attrgetter("statistics.success.count")),
        _divided(
            "nv_inference_request_failure", counted, "reason", attrgetter("statistics.failures")
        ),
        _family("nv_inference_count", counted, attrgetter("statistics.inference_count")),
        _family("nv_inference_exec_count", counted, attrgetter("statistics.execution_count")),
    ]
    if settings.counters:
        found.append(_durations("nv_inference_request_duration_us", counted, "success"))
        for name in _PHASES:
            found.append(_durations(f"nv_inference_{name}_duration_us", counted, name))
    return found


def _cache_counters(cached: Labelled, settings: MetricSettings) -> list[Family]:
    found = []
    for name, plural in (("cache_hit", "hits"), ("cache_miss", "misses")):
        count = attrgetter(f"statistics.{name}.count")
        found.append(_family(f"nv_cache_num_{plural}_per_model", cached, count))
        if settings.counters:
            found.append(_durations(f"nv_{name}_duration_per_model", cached, name))
    return found


def _gauges(plain: Labelled) -> list[Family]:
    by_priority = attrgetter("chain.pending_by_priority")
    return [
        _family("nv_inference_pending_request_count", plain, attrgetter("chain.pending")),
        _family("nv_model_load_duration_secs", plain, attrgetter("load_seconds")),
        _family("core_inference_in_flight", plain, attrgetter("chain.in_flight")),
        _divided("core_inference_pending_by_priority", plain, "priority", by_priority),
        _family("core_inference_wait_estimate_seconds", plain, latencies.wait_estimate_s),
    ]


def _of_loads(plain: Labelled, every: Iterable[ModelVersion], results: Results) -> list[Family]:
    """Return families: which wanted or READY versions can serve; loads and unloads by model and result."""
    serving = [Sample(labels, int(version.chain.ready)) for labels, version in plain]
    missing = [
        Sample(labels_of(version), 0)
        for version in every
        if version.wanted and version.state != "READY"
    ]
    found = [family("core_model_ready", serving + missing)]
    for name in ("loads", "unloads"):
        samples = [
            Sample({**named(namespace, model), "result": result}, count)
            for namespace, model, counts in results
            for (what, result), count in counts.items()
            if what == name
        ]
        found.append(family(f"core_model_{name}", samples))
    return found


def _family(name: str, labelled: Labelled, read: Callable[[ModelVersion], float]) -> Family:
    return family(name, [new(Sample, (labels, read(version), "")) for labels, version in labelled])


def _divided(
    name: str,
    labelled: Labelled,
    label: str,
    read: Callable[[ModelVersion], Mapping[str | int, float]],
) -> Family:
    """Return a family with a sample for each version and each key that `read` returns, the key as `label`."""
    samples = [
        Sample(plus(labels, label, str(key)), value)
        for labels, version in labelled
        for key, value in read(version).items()
    ]
    return family(name, samples)


def _durations(name: str, labelled: Labelled, duration: str) -> Family:
    """Return a family with the total of one duration of each version, in whole microseconds."""
    ns = attrgetter(f"statistics.{duration}.ns")
    return _family(name, labelled, lambda version: ns(version) // 1000)


def _of_server(values: Mapping[str, float]) -> list[Family]:
    """Return a family with one sample without labels for each name → value."""
    return [family(name, [Sample({}, value)]) for name, value in values.items()]


def _cache_families(cache: Cache | None) -> list[Family]:
    """Return the families of the cache, none without one; those of Triton only if it can tell its fill."""
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
    return _of_server(values)
