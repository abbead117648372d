"""The metrics frontend: GET /metrics in Prometheus' text format, on a port of its own."""

from frontends.metrics.frontend import MetricsFrontend

__all__ = ["MetricsFrontend"]
