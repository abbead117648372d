"""Metrics of the server, for users in docs/operate/metrics.md. core/control/metrics collects them."""
