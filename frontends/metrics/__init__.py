"""The metrics frontend: GET /metrics in Prometheus' text format, on a separate port."""

from frontends.metrics.frontend import MetricsFrontend

__all__ = ["MetricsFrontend"]
