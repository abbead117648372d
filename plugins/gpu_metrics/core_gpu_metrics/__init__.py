"""Metrics of NVIDIA GPUs, read by NVML. gpus.py reads them on a separate thread."""

from __future__ import annotations

from typing import TYPE_CHECKING

import core

if TYPE_CHECKING:
    from core.options import Flags, Options
    from core.telemetry.metrics.source import MetricSource


@core.hookimpl
def core_add_options(parser: Flags) -> None:
    parser.add("allow-gpu-metrics", True, "Whether metrics include GPUs.")


@core.hookimpl
def core_open_metric_source(options: Options) -> MetricSource | None:
    """Return the GPUs of this process, unless --allow-gpu-metrics=false."""
    # A server inside a program has no command line: it sets the option of core.
    if not (options.allow_gpu_metrics and options.added.get("allow_gpu_metrics", True)):
        return None
    from core_gpu_metrics.gpus import Gpus

    return Gpus(options.metrics_interval_ms / 1000)
