"""The plugin: metrics of engines."""

from __future__ import annotations

from typing import TYPE_CHECKING

import core

if TYPE_CHECKING:
    from core.telemetry.metrics.source import MetricSource


@core.hookimpl
def core_open_metric_source() -> MetricSource:
    """Return the metrics of the server's engines."""
    from core_generate.metrics import GenerationMetrics

    return GenerationMetrics()
