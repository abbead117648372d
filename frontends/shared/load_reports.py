"""LoadReports: the load of this process in the form of ORCA, for load balancers.

request with endpoint-load-metrics-format ─► [LoadReports] ─► endpoint-load-metrics of its response

The values are those of the metrics, and those that plugins add. docs/operate/load-reports.md has the fields.
"""

from __future__ import annotations

import json
import time
from collections.abc import Callable, Mapping

from core.server import InferenceServer
from core.telemetry.families import Family, Sample
from frontends.shared.recent_growth import RecentGrowth

FORMAT = "endpoint-load-metrics-format"
REPORT = "endpoint-load-metrics"

# Seconds for which a report is repeated: a scrape of a server with many models takes milliseconds.
_KEPT_S = 0.25
# Seconds over which rates are counted: shorter ones of few requests per second would jump.
_RATES_S = 2.0

Numbers = dict[str, float]


class LoadReports:
    """The load reports of one server. Event loop only.

    scrape    returns the metric families of this process
    clock_s   monotonic time in seconds
    unasked   returns a serialized OrcaLoadReport for a response over gRPC whose request asks for no report.
              None, unless a plugin sets it before the ports open: such a response has none
    """

    def __init__(
        self,
        scrape: Callable[[], list[Family]],
        clock_s: Callable[[], float] = time.monotonic,
    ):
        self._scrape = scrape
        self._clock_s = clock_s
        self.unasked: Callable[[], bytes] | None = None
        self._added: list[Callable[[Numbers], Numbers]] = []
        self._texts: dict[str, str] = {}  # of the last reading, by format
        self._numbers: tuple[Numbers, Numbers] = ({}, {})
        self._read_s = float("-inf")
        self._counts: RecentGrowth[str] = RecentGrowth(_RATES_S)

    @staticmethod
    def of(server: InferenceServer) -> LoadReports:
        """Return the load reports of a server: the same object at every call."""
        return server.shared(_reports_of)

    def add(self, measure: Callable[[Numbers], Numbers]) -> None:
        """Add standard fields of ORCA to all later reports, such as application_utilization.

        `measure` is called for each new report, at most four times a second. It gets the named metrics and
        returns fields and their values.
        """
        self._added.append(measure)

    def numbers(self) -> tuple[Numbers, Numbers]:
        """Return the standard fields and the named metrics, at most 0.25 seconds old.

        The same tuple until they are read again. Fields that are unknown are left out.
        """
        now_s = self._clock_s()
        if now_s - self._read_s >= _KEPT_S:
            self._texts = {}
            self._numbers = self._read(now_s)
            self._read_s = now_s
        return self._numbers

    def text(self, form: str | bytes | None) -> str | None:
        """Return the report in a format, at most 0.25 seconds old; None for an unknown format.

        form   "json" or "text"; Triton ignores other values, too
        """
        if form not in ("json", "text"):
            return None
        values, named = self.numbers()
        if not self._texts:
            self._texts = {"json": _json(values, named), "text": _text(values, named)}
        return self._texts[str(form)]

    def fields(self, form: str) -> Mapping[str, str]:
        """Return the header field with the report; none for an unknown format."""
        found = self.text(form)
        return {} if found is None else {REPORT: found}

    async def close(self) -> None:
        """Forget the texts of the last report. The server calls it at its end."""
        self._texts.clear()

    def _read(self, now_s: float) -> tuple[Numbers, Numbers]:
        found = {each.name: each for each in self._scrape()}
        values: Numbers = {}
        if (share := _largest(found, "nv_cpu_utilization")) is not None:
            values["cpu_utilization"] = share
        total = _largest(found, "nv_cpu_memory_total_bytes")
        used = _largest(found, "nv_cpu_memory_used_bytes")
        if total and used is not None:
            values["mem_utilization"] = used / total
        failures = _total(found, "nv_inference_request_failure")
        requests = failures + _total(found, "nv_inference_request_success")
        past_s, grown = self._counts.add(now_s, {"rps_fractional": requests, "eps": failures})
        values.update({name: growth / past_s for name, growth in grown.items()})
        named = _named(found)
        for measure in self._added:
            values.update(measure(named))
        return values, named


def _reports_of(server: InferenceServer) -> LoadReports:
    return LoadReports(server.control.health.metrics_here)


def _named(found: Mapping[str, Family]) -> Numbers:
    """Return the named metrics: use (0 to 1) and size (tokens) of the memory for contexts, then requests.

    Use and size are those of TensorRT-LLM's backend if it reports them. Else the use is that of the fullest
    engine, and the size that of all engines together; what no engine reports is left out.
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
