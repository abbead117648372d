"""Metrics `vllm:…` of the models that ask for them, with the names of vLLM and of Triton's backend.

Counts of a model version ─► [VllmMetrics] ─► families of a scrape
"""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import TYPE_CHECKING

from core.telemetry.families import Family, KindOfMetric
from core.telemetry.metrics.catalog import VERSION, Entry
from core.telemetry.metrics.source import MetricSource

if TYPE_CHECKING:
    from backend_vllm.model import VllmModel

_GIVEN = "models of vLLM with `REPORT_CUSTOM_METRICS`"


def _entry(
    name: str, kind: KindOfMetric, text: str, labels: tuple[str, ...] = (), largest: bool = False
) -> Entry:
    return Entry(
        f"vllm:{name}",
        kind,
        text,
        (*VERSION, *labels),
        _GIVEN,
        together="largest" if largest else "sum",
    )


# Those of Triton's backend come first.
ENTRIES = [
    _entry("prompt_tokens_total", "counter", "Number of prefill tokens processed."),
    _entry("generation_tokens_total", "counter", "Number of generation tokens processed."),
    _entry(
        "time_to_first_token_seconds", "histogram", "Histogram of time to first token in seconds."
    ),
    _entry(
        "time_per_output_token_seconds",
        "histogram",
        "Histogram of time per output token in seconds.",
    ),
    _entry(
        "e2e_request_latency_seconds",
        "histogram",
        "Histogram of end to end request latency in seconds.",
    ),
    _entry("request_prompt_tokens", "histogram", "Number of prefill tokens processed."),
    _entry("request_generation_tokens", "histogram", "Number of generation tokens processed."),
    _entry("request_params_n", "histogram", "Histogram of the n request parameter."),
    _entry("num_requests_running", "gauge", "Requests that the last step computed"),
    _entry("num_requests_waiting", "gauge", "Requests that wait in vLLM"),
    _entry(
        "kv_cache_usage_perc",
        "gauge",
        "Used part of the cache of keys and values [0.0 - 1.0]",
        largest=True,
    ),
    _entry(
        "prefix_cache_queries_total", "counter", "Tokens that were looked up in the prefix cache"
    ),
    _entry("prefix_cache_hits_total", "counter", "Tokens that the prefix cache had"),
    _entry("num_preemptions_total", "counter", "Requests whose cache vLLM took for others"),
    _entry(
        "request_success_total",
        "counter",
        "Requests that vLLM has finished, by the reason",
        ("finished_reason",),
    ),
    _entry("request_queue_time_seconds", "histogram", "Time that requests waited in vLLM"),
    _entry("request_prefill_time_seconds", "histogram", "Time until the first token of requests"),
    _entry("request_decode_time_seconds", "histogram", "Time of the other tokens of requests"),
    _entry(
        "lora_requests_info",
        "gauge",
        "LoRA adapters that run and wait, separated by commas; the value is the time of the last step, in "
        "seconds since 1970; absent while there are none",
        ("running_lora_adapters", "waiting_lora_adapters", "max_lora"),
        largest=True,
    ),
]

_loaded: dict[int, VllmModel] = {}  # by id


def show(model: VllmModel) -> None:
    """Show the metrics of a model version from now on. Any thread."""
    _loaded[id(model)] = model


def hide(model: VllmModel) -> None:
    """Show the metrics of a model version no more; nothing happens if they are not shown. Any thread."""
    _loaded.pop(id(model), None)


class VllmMetrics(MetricSource):
    """The metrics of all loaded models of the server on whose event loop `families` is called."""

    catalog = {"vLLM (backend `backend-vllm`)": ENTRIES}

    def families(self) -> Sequence[Family]:
        loop = asyncio.get_running_loop()  # that of one server; others may be in this process
        found = [each for each in list(_loaded.values()) if each.measured.loop is loop]
        if not found:
            return ()
        found.sort(key=lambda each: (each.name, each.version))
        labelled = [
            (
                each.counts,
                {**each.config.metric_tags, "model": each.name, "version": f"{each.version}"},
            )
            for each in found
        ]
        return [
            entry.family(
                sample
                for counts, labels in labelled
                for sample in counts.samples(entry.name.removeprefix("vllm:"), labels)
            )
            for entry in ENTRIES
        ]
