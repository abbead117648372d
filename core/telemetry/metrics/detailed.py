"""Statistics with the distribution of latencies, for --metrics-config with histograms or summaries.

The load of a model version chooses these or the plain statistics, so disabled histograms and summaries cost
nothing per request. Call from the loop thread only.
"""

from __future__ import annotations

import logging
import time
from collections.abc import Callable

from core.config.messages import ModelConfig
from core.native.clock import Clock
from core.native.distribution import Histogram, QuantileSketch
from core.telemetry.metrics.settings import MetricSettings
from core.telemetry.statistics import Statistics

logger = logging.getLogger("core")

AGE_NS = 12_000_000_000  # a sketch keeps five periods: the last minute, like Triton's summaries

FIRST_RESPONSE = "nv_inference_first_response_histogram_ms"

# family of a histogram → name of its latency
HISTOGRAMS = {
    f"nv_inference_{name}_duration_histogram_us": name
    for name in ("request", "queue", "compute_input", "compute_infer", "compute_output")
}
BATCH_SIZE = "core_inference_batch_size"

# Upper bounds in the unit at the end of the family's name. Triton's defaults if it has the family.
_OF_A_REQUEST = (1000.0, 5000.0, 25000.0, 50000.0, 100000.0)
_AROUND_IT = (100.0, 500.0, 1000.0, 5000.0, 10000.0)
BUCKETS: dict[str, tuple[float, ...]] = {
    FIRST_RESPONSE: (100.0, 500.0, 2000.0, 5000.0),
    "nv_inference_request_duration_histogram_us": _OF_A_REQUEST,
    "nv_inference_queue_duration_histogram_us": (100.0, 1000.0, 5000.0, 10000.0, 50000.0),
    "nv_inference_compute_input_duration_histogram_us": _AROUND_IT,
    "nv_inference_compute_infer_duration_histogram_us": _OF_A_REQUEST,
    "nv_inference_compute_output_duration_histogram_us": _AROUND_IT,
}


class Phase:
    """One latency of a model version: its histogram, its quantile sketch, both or neither."""

    def __init__(self, histogram: Histogram | None, spread: QuantileSketch | None):
        self.histogram = histogram
        self.spread = spread

    def observe(self, ns: int) -> None:
        if self.histogram is not None:
            self.histogram.observe(ns)
        if self.spread is not None:
            self.spread.observe(ns)


class DetailedStatistics(Statistics):
    """Statistics that also observe each latency in a histogram, a quantile sketch or both.

    spread     whether to keep quantile sketches of the last minute
    histogram  name of a latency → its bounds in microseconds; None for no histograms
    first      bounds of the time to the first response in milliseconds; None for no histogram
    streams    whether the caller, and not `succeeded`, observes first responses in `first_response`
    clock_ns   time.monotonic_ns, or the clock of a test
    """

    def __init__(
        self,
        spread: bool,
        histogram: dict[str, tuple[float, ...]] | None,
        first: tuple[float, ...] | None,
        streams: bool,
        clock_ns: Callable[[], int] = time.monotonic_ns,
    ):
        super().__init__()

        names = (*HISTOGRAMS.values(), "cache_hit", "cache_miss")
        self._phases = {name: _phase((histogram or {}).get(name), spread) for name in names}
        self.request_phase = self._phases["request"]
        self.queue_phase = self._phases["queue"]
        self.input_phase = self._phases["compute_input"]
        self.infer_phase = self._phases["compute_infer"]
        self.output_phase = self._phases["compute_output"]
        self.hit_phase = self._phases["cache_hit"]
        self.miss_phase = self._phases["cache_miss"]
        self.first_response = Histogram(first, 1_000_000) if first is not None else None
        self._streams = streams
        self._clock = Clock(clock_ns)
        self._spreads = spread
        self._turn_ns = self._clock.now_ns() + AGE_NS

    def phases(self) -> dict[str, Phase]:
        """Return each latency by its name, without expired periods."""
        self.grow_old()
        return self._phases

    def succeeded(
        self, rows: int, total_ns: int, queue_ns: int, input_ns: int, infer_ns: int, output_ns: int
    ) -> None:
        """Count a successful request of `rows` rows that has got its last response; observe its latencies."""
        Statistics.succeeded(self, rows, total_ns, queue_ns, input_ns, infer_ns, output_ns)
        if self._spreads:
            self.grow_old()
        self.request_phase.observe(total_ns)
        self.queue_phase.observe(queue_ns)
        self.input_phase.observe(input_ns)
        self.infer_phase.observe(infer_ns)
        self.output_phase.observe(output_ns)
        if self.first_response is not None and not self._streams:
            self.first_response.observe(total_ns)

    def hit(self, lookup_ns: int, queue_ns: int, total_ns: int) -> None:
        """Count a request answered by the cache, and observe its latencies."""
        Statistics.hit(self, lookup_ns, queue_ns, total_ns)
        if self._spreads:
            self.grow_old()
        self.request_phase.observe(total_ns)
        self.queue_phase.observe(queue_ns)
        self.hit_phase.observe(lookup_ns)
        if self.first_response is not None:
            self.first_response.observe(total_ns)

    def missed(self, cache_ns: int) -> None:
        """Count a cache miss of a request, and observe its duration."""
        Statistics.missed(self, cache_ns)
        if self._spreads:
            self.grow_old()
        self.miss_phase.observe(cache_ns)

    def grow_old(self) -> None:
        """Begin a new period of the sketches for each AGE_NS that has passed, which discards the oldest."""
        now_ns = self._clock.now_ns()
        while now_ns >= self._turn_ns:
            # After a long idle time a few turns discard everything.
            if now_ns - self._turn_ns > 10 * AGE_NS:
                self._turn_ns = now_ns - 10 * AGE_NS
            self._turn_ns += AGE_NS
            for phase in self._phases.values():
                if phase.spread is not None:
                    phase.spread.turn()


def _phase(bounds: tuple[float, ...] | None, spread: bool) -> Phase:
    return Phase(
        Histogram(bounds, 1000) if bounds is not None else None,
        QuantileSketch() if spread else None,
    )


def statistics_of(
    settings: MetricSettings,
    config: ModelConfig,
    clock_ns: Callable[[], int] = time.monotonic_ns,
) -> Statistics:
    """Return the statistics of a model version: plain, or with the enabled histograms and summaries."""
    if not settings.histograms and not settings.summaries:
        return Statistics()
    own = buckets_of(config)
    return DetailedStatistics(
        settings.summaries,
        {name: own.get(family, BUCKETS[family]) for family, name in HISTOGRAMS.items()}
        if settings.histograms
        else None,
        own.get(FIRST_RESPONSE, BUCKETS[FIRST_RESPONSE]) if settings.histograms else None,
        config.model_transaction_policy.decoupled,
        clock_ns,
    )


def buckets_of(config: ModelConfig) -> dict[str, tuple[float, ...]]:
    """Return metric family → its buckets, for the families in model_metrics of a configuration."""
    return {
        control.metric_identifier.family: tuple(control.histogram_options.buckets)
        for control in config.model_metrics.metric_control
    }


def warn_of_unknown_families(config: ModelConfig) -> None:
    """Log a warning for each family in model_metrics whose buckets cannot be configured."""
    for family in sorted(set(buckets_of(config)) - {*BUCKETS, BATCH_SIZE}):
        logger.warning(
            "model '%s': model_metrics has no effect on '%s', expected one of %s",
            config.name,
            family,
            ", ".join(sorted({*BUCKETS, BATCH_SIZE})),
        )
