"""The metrics frontend: GET /metrics in Prometheus' text format, on a separate port."""
