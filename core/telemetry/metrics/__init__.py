"""What the server tells of itself on the metrics port; `docs/metrics.md` is the page for those who read it.

catalog.py    every family that the server has: name, kind, labels, help
collect.py    their values of now, when somebody asks
detailed.py   how latencies are spread, for who asks for histograms or summaries
settings.py   what --metrics-config says
watch.py      what has to be looked at while the server runs: machine.py, gpus.py, process.py, lag.py
"""
