"""Catalog of core's metric families. Those of plugins are in their MetricSource, those of models in the
registry."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from core.telemetry.families import Family, KindOfMetric, Sample, Summary, Together

VERSION = ("model", "version")


@dataclass(frozen=True)
class Entry:
    """A metric family.

    labels     in addition to namespace and tags of a model, and to gpu_uuid if `instances`
    given      when it is exposed, as words for a page of docs; "" for always
    together   how values of several workers are combined; see Family
    instances  whether its values come from the instances of a model, which may all be on one GPU
    """

    name: str
    kind: KindOfMetric
    help: str
    labels: tuple[str, ...] = ()
    given: str = ""
    together: Together = "sum"
    instances: bool = False

    def family(self, samples: Iterable[Sample] = (), summaries: Iterable[Summary] = ()) -> Family:
        """Return the family with its samples, including those of its summaries."""
        exposed, kept = list(samples), list(summaries)
        for each in kept:
            exposed += each.samples()
        return Family(self.name, self.kind, self.help, exposed, self.together, kept)


def _of_instances(
    kind: KindOfMetric, rows: Iterable[tuple[str, str]], given: str = ""
) -> list[Entry]:
    return [Entry(name, kind, text, VERSION, given, instances=True) for name, text in rows]


_COUNTERS = "unless `counter_latencies=false`"
_HISTOGRAMS = "with `histogram_latencies=true`"
_SUMMARIES = "with `summary_latencies=true`"
_CACHED = "models with `response_cache`"
_LOCAL = "with `--cache-config=local,…`"
_WORKERS = "with `--workers`"
_PHASES = (
    ("request", "inference request duration", "includes"),
    ("queue", "inference queuing duration", "includes"),
    ("compute_input", "compute input duration", "does not include"),
    ("compute_infer", "compute inference duration", "does not include"),
    ("compute_output", "inference compute output duration", "does not include"),
)

INFERENCE = [
    *_of_instances(
        "counter",
        [
            (
                "nv_inference_request_success",
                "Number of successful inference requests, all batch sizes",
            )
        ],
    ),
    Entry(
        "nv_inference_request_failure",
        "counter",
        "Number of failed inference requests, all batch sizes",
        (*VERSION, "reason"),
        instances=True,
    ),
    *_of_instances(
        "counter",
        [
            (
                "nv_inference_count",
                "Number of inferences performed (does not include cached requests)",
            ),
            (
                "nv_inference_exec_count",
                "Number of model executions performed (does not include cached requests)",
            ),
        ],
    ),
    *_of_instances(
        "counter",
        [
            (
                f"nv_inference_{name}_duration_us",
                f"Cumulative {text} in microseconds ({includes} cached requests)",
            )
            for name, text, includes in _PHASES
        ],
        _COUNTERS,
    ),
    Entry(
        "nv_inference_pending_request_count",
        "gauge",
        "Instantaneous number of pending requests awaiting execution per-model.",
        VERSION,
    ),
    Entry(
        "nv_model_load_duration_secs",
        "gauge",
        "Model load time in seconds",
        VERSION,
        together="largest",
    ),
]

LATENCIES = [
    *_of_instances(
        "histogram",
        [
            (
                "nv_inference_first_response_histogram_ms",
                "Duration from request to first response in milliseconds",
            ),
            *(
                (
                    f"nv_inference_{name}_duration_histogram_us",
                    f"Histogram of {text} in microseconds ({includes} cached requests)",
                )
                for name, text, includes in _PHASES
            ),
        ],
        _HISTOGRAMS,
    ),
    *_of_instances(
        "summary",
        [
            (
                f"nv_inference_{name}_summary_us",
                # Triton's own words, which differ.
                f"{'Summary of' if name in ('request', 'queue') else 'Cumulative'} {text} in "
                f"microseconds ({includes} cached requests)",
            )
            for name, text, includes in _PHASES
        ],
        _SUMMARIES,
    ),
    *(
        Entry(
            f"nv_cache_{name}_summary_per_model",
            "summary",
            f"Summary of cache {name} counts/durations per model, in microseconds.",
            VERSION,
            f"{_SUMMARIES}, {_CACHED}",
            instances=True,
        )
        for name in ("hit", "miss")
    ),
]

CACHE = [
    Entry(name, "counter", text, VERSION, given, instances=True)
    for name, given, text in (
        ("nv_cache_num_hits_per_model", _CACHED, "Number of cache hits per model"),
        (
            "nv_cache_hit_duration_per_model",
            f"{_COUNTERS}, {_CACHED}",
            "Total cache hit duration per model, in microseconds",
        ),
        ("nv_cache_num_misses_per_model", _CACHED, "Number of cache misses per model"),
        (
            "nv_cache_miss_duration_per_model",
            f"{_COUNTERS}, {_CACHED}",
            "Total cache miss (insert+lookup) duration per model, in microseconds",
        ),
    )
] + [
    Entry("nv_cache_util", "gauge", "Cache utilization [0.0 - 1.0]", (), _LOCAL, "largest"),
    *(
        Entry(f"nv_cache_{name}", "gauge", text, (), _LOCAL)
        for name, text in (
            ("num_entries", "Number of responses stored in response cache"),
            ("num_hits", "Number of cache hits in response cache"),
            ("num_misses", "Number of cache misses in response cache"),
            ("num_lookups", "Number of cache lookups in response cache"),
            ("num_evictions", "Number of cache evictions in response cache"),
            ("lookup_duration", "Total cache lookup duration (hit and miss), in microseconds"),
            ("insertion_duration", "Total cache insertion duration, in microseconds"),
        )
    ),
    *(
        Entry(f"core_cache_{name}", "counter", text, (), "with `--cache-config`")
        for name, text in (
            ("lookups", "Cache lookups"),
            ("hits", "Lookups that found a response"),
            ("insertions", "Responses stored in the cache"),
            ("evictions", "Responses evicted to make room for others"),
            ("failures", "Failed lookups and insertions"),
        )
    ),
]

PINNED = [
    Entry(
        f"nv_pinned_memory_pool_{name}_bytes",
        "gauge",
        f"Pinned memory pool {name} memory size, in bytes",
    )
    for name in ("total", "used")
]

OWN = [
    Entry(
        "core_inference_in_flight",
        "gauge",
        "Accepted requests whose last response is not sent yet, queued or running",
        VERSION,
    ),
    Entry(
        "core_inference_pending_by_priority",
        "gauge",
        "Requests waiting for an instance, by priority level",
        (*VERSION, "priority"),
        "models with `priority_levels`",
    ),
    Entry(
        "core_inference_wait_estimate_seconds",
        "gauge",
        "Estimated queue time of a new request: waiting requests times their mean execution time, divided by "
        "the instances",
        VERSION,
        together="largest",
    ),
    Entry(
        "core_inference_batch_size",
        "histogram",
        "Rows of executed batches",
        VERSION,
        "models with `max_batch_size` over 1",
        instances=True,
    ),
    Entry(
        "core_model_ready",
        "gauge",
        "1 if the model version can serve; 0 while it loads, after it failed, or without instances",
        VERSION,
        together="smallest",
    ),
    *(
        Entry(
            f"core_model_{name}",
            "counter",
            f"{name.capitalize()} of model versions, by result: success or failure",
            ("model", "result"),
            together="largest",
        )
        for name in ("loads", "unloads")
    ),
    Entry("core_workers", "gauge", "Running worker processes", (), _WORKERS),
    Entry("core_worker_restarts", "counter", "Restarts of a worker process", ("worker",), _WORKERS),
    Entry(
        "core_request_memory_bytes",
        "gauge",
        "Bytes held by requests and responses of all connections",
    ),
    Entry("core_request_memory_limit_bytes", "gauge", "Limit of core_request_memory_bytes"),
    Entry(
        "core_request_memory_unpaid_bytes",
        "gauge",
        "Decompressed bytes beyond the allowed ratio to the compressed size",
    ),
    Entry(
        "core_request_memory_refusals",
        "counter",
        "Requests and responses refused because of the memory limit",
    ),
]

PARTS = {
    "Requests": INFERENCE,
    "Latencies": LATENCIES,
    "Response cache": CACHE,
    "Pinned memory": PINNED,
    "Not in Triton": OWN,
}
CATALOG = {entry.name: entry for entries in PARTS.values() for entry in entries}


def family(name: str, samples: Iterable[Sample] = (), summaries: Iterable[Summary] = ()) -> Family:
    """Return a family of the catalog with its samples, including those of its summaries."""
    return CATALOG[name].family(samples, summaries)
