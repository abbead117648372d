"""The metrics of machine, process and event loop, as a plugin: a server without them serves as well."""

from __future__ import annotations

from typing import TYPE_CHECKING

import core

if TYPE_CHECKING:
    from core.options import Options
    from core.telemetry.metrics.source import MetricSource


@core.hookimpl
def core_open_metric_source(options: Options, worker: int | None) -> MetricSource:
    """Return the source of these metrics; those of the machine depend on --allow-cpu-metrics."""
    from frontends.metrics.sources.joined import JoinedSources
    from frontends.metrics.sources.loop_lag import LoopLag
    from frontends.metrics.sources.machine import Machine
    from frontends.metrics.sources.process import Process

    interval_s = options.metrics_interval_ms / 1000
    labels = {} if worker is None else {"worker": str(worker)}
    machine = [Machine(interval_s)] if options.allow_cpu_metrics else []
    return JoinedSources([*machine, Process(interval_s, labels), LoopLag(labels)])
