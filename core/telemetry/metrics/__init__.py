"""Metrics of the server; `docs/metrics.md` is the page for users, core/control/metrics collects the values.

catalog.py    every family of core: name, kind, labels, help
detailed.py   histograms and summaries of latencies
settings.py   the settings of --metrics-config
source.py     metrics of one origin: machine.py, process.py, lag.py, and those of plugins
"""
