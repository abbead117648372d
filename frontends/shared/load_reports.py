"""LoadReports: the load of this process in the form of ORCA, for load balancers.

request with endpoint-load-metrics-format ─► [LoadReports] ─► endpoint-load-metrics of its response

The values are those of the metrics. docs/operate/load-reports.md describes the fields.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping

from core.server import InferenceServer
from core.telemetry.families import Family, Sample

FORMAT = "endpoint-load-metrics-format"
REPORT = "endpoint-load-metrics"

# Seconds for which a report is repeated: a scrape of a server with many models takes milliseconds.
_KEPT_S = 0.25

Numbers = dict[str, float]


class LoadReports:
    """The load reports of one server. Event loop only.

    scrape    returns the metric families of this process
    clock_s   monotonic time in seconds
    """

    def __init__(
        self,
        scrape: Callable[[], list[Family]],
        clock_s: Callable[[], float] = time.monotonic,
    ):
        self._scrape = scrape
        self._clock_s = clock_s
        self._texts: dict[str, str] = {}  # of the last scrape, by format
        self._read_s = float("-inf")
        self._counts: tuple[float, float] | None = None  # requests and failures at the last scrape

    @staticmethod
    def of(server: InferenceServer) -> LoadReports:
        """Return the load reports of a server: the same object at every call."""
        return server.shared(_reports_of)

    def text(self, form: str | bytes | None) -> str | None:
        """Return the report in a format, at most 0.25 seconds old; None for an unknown format.

        form   "json" or "text"; Triton ignores other values, too
        """
        if form not in ("json", "text"):
            return None
        now_s = self._clock_s()
        if now_s - self._read_s >= _KEPT_S:
            values, named = self._read(now_s)
            self._texts = {"json": _json(values, named), "text": _text(values, named)}
        return self._texts[str(form)]

    def fields(self, form: str) -> Mapping[str, str]:
        """Return the header field with the report; none for an unknown format."""
        found = self.text(form)
        return {} if found is None else {REPORT: found}

    async def close(self) -> None:
        """Forget the last report. The server calls it at its end."""
        self._texts.clear()

    def _read(self, now_s: float) -> tuple[Numbers, Numbers]:
        """Return the standard fields and the named metrics of ORCA, without those that are unknown."""
        found = {each.name: each for each in self._scrape()}
        values: Numbers = {}
        if (share := _largest(found, "nv_cpu_utilization")) is not None:
            values["cpu_utilization"] = share
        total = _largest(found, "nv_cpu_memory_total_bytes")
        used = _largest(found, "nv_cpu_memory_used_bytes")
        if total and used is not None:
            values["mem_utilization"] = used / total
        failures = _total(found, "nv_inference_request_failure")
        counts = (failures + _total(found, "nv_inference_request_success"), failures)
        if self._counts is not None:
            past_s = now_s - self._read_s
            # Statistics begin at 0 again when a model is loaded again.
            names = ("rps_fractional", "eps")
            for name, now, before in zip(names, counts, self._counts, strict=True):
                values[name] = max(0.0, now - before) / past_s
        self._counts, self._read_s = counts, now_s
        return values, _named(found)


def _reports_of(server: InferenceServer) -> LoadReports:
    return LoadReports(server.control.health.metrics_here)


def _named(found: Mapping[str, Family]) -> Numbers:
    """Return the named metrics, first those of Triton: use and size of the memory for contexts.

    They are those of TensorRT-LLM's backend if it reports them, else of the engine whose memory is used most.
    """
    named: Numbers = {}
    blocks = {
        each.labels.get("kv_cache_block_type", ""): each.value
        for each in _samples(found, "nv_trt_llm_kv_cache_block_metrics")
    }
    if {"used", "max", "tokens_per"} <= blocks.keys():
        named["kv_cache_utilization"] = blocks["used"] / blocks["max"] if blocks["max"] else 0.0
        named["max_token_capacity"] = int(blocks["max"] * blocks["tokens_per"])
    else:
        if (use := _largest(found, "core_generation_cache_use")) is not None:
            named["kv_cache_utilization"] = use
        if capacity := _total(found, "core_generation_cache_tokens"):
            named["max_token_capacity"] = int(capacity)
    named["requests_in_flight"] = int(_total(found, "core_inference_in_flight"))
    named["requests_pending"] = int(_total(found, "nv_inference_pending_request_count"))
    return named


def _samples(found: Mapping[str, Family], name: str) -> list[Sample]:
    family = found.get(name)
    return [] if family is None else list(family.samples)


def _largest(found: Mapping[str, Family], name: str) -> float | None:
    return max((each.value for each in _samples(found, name)), default=None)


def _total(found: Mapping[str, Family], name: str) -> float:
    return sum(each.value for each in _samples(found, name))


def _json(values: Numbers, named: Numbers) -> str:
    return "JSON " + json.dumps({**values, "named_metrics": named}, separators=(",", ":"))


def _text(values: Numbers, named: Numbers) -> str:
    every = {**values, **{f"named_metrics.{name}": value for name, value in named.items()}}
    return "TEXT " + ", ".join(f"{name}={_number(value)}" for name, value in every.items())


def _number(value: float) -> str:
    return str(value) if isinstance(value, int) else f"{value:f}"
