"""The metrics frontend: GET /metrics in Prometheus' text format, on a port of its own."""
