"""The plugin: metrics of vLLM."""

from __future__ import annotations

from typing import TYPE_CHECKING

import core

if TYPE_CHECKING:
    from core.telemetry.metrics.source import MetricSource


@core.hookimpl
def core_open_metric_source() -> MetricSource:
    """Return the metrics of the server's models of vLLM."""
    from backend_vllm.metrics import VllmMetrics

    return VllmMetrics()
