"""Metrics of the server. `docs/metrics.md` is the page for users, core/control/metrics collects them."""
