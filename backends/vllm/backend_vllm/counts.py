"""Counts: what vLLM reports of its steps, kept for metrics and for the status of an engine.

StatLogger of vLLM ─► [Counts] ─► status of the engine, metrics `vllm:…`

Imports no part of vLLM.
"""

from __future__ import annotations

import threading
import time
from bisect import bisect_left
from collections import Counter
from collections.abc import Iterable
from typing import Any

from core.telemetry.families import Sample, histogram_samples

# Upper bounds; those of the families that Triton's backend has are the same there.
FIRST_TOKEN_S = (
    *(0.001, 0.005, 0.01, 0.02, 0.04, 0.06, 0.08, 0.1, 0.25, 0.5, 0.75, 1.0, 2.5, 5.0),
    *(7.5, 10.0),
)
PER_TOKEN_S = (0.01, 0.025, 0.05, 0.075, 0.1, 0.15, 0.2, 0.3, 0.4, 0.5, 0.75, 1.0, 2.5)
WHOLE_S = (1.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0)
PHASE_S = (
    *(0.3, 0.5, 0.8, 1.0, 1.5, 2.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0, 40.0, 50.0, 60.0),
    *(120.0, 240.0, 480.0, 960.0, 1920.0),
)
CHOICES = (1.0, 2.0, 5.0, 10.0, 20.0)


def token_bounds(context: int) -> tuple[float, ...]:
    """Return 1, 2, 5, 10, 20, 50, … up to the number of tokens of a context."""
    found: list[float] = []
    power = 1
    while True:
        for factor in (1, 2, 5):
            if factor * power > context:
                return tuple(found)
            found.append(float(factor * power))
        power *= 10


class _Histogram:
    def __init__(self, bounds: tuple[float, ...]):
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self._total = 0.0

    def observe(self, values: Iterable[float]) -> None:
        for value in values:
            self._counts[bisect_left(self._bounds, value)] += 1
            self._total += value

    def samples(self, labels: dict[str, str]) -> list[Sample]:
        return histogram_samples(labels, self._bounds, self._counts, self._total)


class Counts:
    """Counts of one model version since its load. `record` and `samples` may run on different threads.

    context    tokens of the longest text
    max_lora   LoRA adapters that a step may have
    """

    def __init__(self, context: int, max_lora: int = 0):
        tokens = token_bounds(context)
        self._lock = threading.Lock()
        self.running = self.waiting = 0
        self.cache_use = 0.0
        self._max_lora = max_lora
        self._adapters: tuple[str, str] = ("", "")  # running and waiting ones
        self._adapters_s = 0.0  # time of the step that had them
        self._numbers: Counter[str] = Counter()
        self._finishes: Counter[str] = Counter()
        self._histograms = {
            "time_to_first_token_seconds": _Histogram(FIRST_TOKEN_S),
            "time_per_output_token_seconds": _Histogram(PER_TOKEN_S),
            "e2e_request_latency_seconds": _Histogram(WHOLE_S),
            "request_prompt_tokens": _Histogram(tokens),
            "request_generation_tokens": _Histogram(tokens),
            "request_params_n": _Histogram(CHOICES),
            "request_queue_time_seconds": _Histogram(PHASE_S),
            "request_prefill_time_seconds": _Histogram(PHASE_S),
            "request_decode_time_seconds": _Histogram(PHASE_S),
        }

    def record(self, scheduler: Any, step: Any) -> None:
        """Count what vLLM reports of a step.

        scheduler   SchedulerStats; None if it reports none
        step        IterationStats; None for a step without tokens
        """
        with self._lock:
            if scheduler is not None:
                self._schedule(scheduler)
            if step is not None:
                self._step(step)

    def rest(self) -> None:
        """Forget what runs: vLLM reports no step after the last request was aborted."""
        with self._lock:
            self.running = self.waiting = 0
            self.cache_use = 0.0
            self._adapters = "", ""

    def samples(self, name: str, labels: dict[str, str]) -> list[Sample]:
        """Return the samples of a family.

        name   without the prefix `vllm:`
        """
        with self._lock:
            if (histogram := self._histograms.get(name)) is not None:
                return histogram.samples(labels)
            if name == "request_success_total":
                return [
                    Sample({**labels, "finished_reason": reason}, count)
                    for reason, count in sorted(self._finishes.items())
                ]
            if name == "lora_requests_info":
                running, waiting = self._adapters
                if not running and not waiting:
                    return []
                known = {
                    "running_lora_adapters": running,
                    "waiting_lora_adapters": waiting,
                    "max_lora": str(self._max_lora),
                }
                return [Sample({**labels, **known}, self._adapters_s)]
            gauges = {
                "num_requests_running": self.running,
                "num_requests_waiting": self.waiting,
                "kv_cache_usage_perc": self.cache_use,
            }
            return [Sample(labels, gauges.get(name, self._numbers[name]))]

    def _schedule(self, found: Any) -> None:
        self.running = found.num_running_reqs
        self.waiting = found.num_waiting_reqs + getattr(found, "num_skipped_waiting_reqs", 0)
        self.cache_use = found.kv_cache_usage
        running, waiting = found.running_lora_adapters, found.waiting_lora_adapters
        self._adapters = ",".join(sorted(running)), ",".join(sorted(waiting))
        self._adapters_s = time.time()
        self._numbers["prefix_cache_queries_total"] += found.prefix_cache_stats.queries
        self._numbers["prefix_cache_hits_total"] += found.prefix_cache_stats.hits

    def _step(self, found: Any) -> None:
        self._numbers["prompt_tokens_total"] += found.num_prompt_tokens
        self._numbers["generation_tokens_total"] += found.num_generation_tokens
        self._numbers["num_preemptions_total"] += found.num_preempted_reqs
        seen = self._histograms
        seen["time_to_first_token_seconds"].observe(found.time_to_first_tokens_iter)
        seen["time_per_output_token_seconds"].observe(found.inter_token_latencies_iter)
        seen["request_params_n"].observe(found.n_params_iter)
        for each in found.finished_requests:
            self._finishes[str(each.finish_reason)] += 1
            seen["e2e_request_latency_seconds"].observe([each.e2e_latency])
            seen["request_prompt_tokens"].observe([each.num_prompt_tokens])
            seen["request_generation_tokens"].observe([each.num_generation_tokens])
            seen["request_queue_time_seconds"].observe([each.queued_time])
            seen["request_prefill_time_seconds"].observe([each.prefill_time])
            seen["request_decode_time_seconds"].observe([each.decode_time])
