"""Measure the cost of serving hundreds of models at once.

    repository of 10, 100, 1000 small models ─► one server after another ─► a table

`python -m benchmarks.many_models` measures start-up, memory, the index, the metrics, idling, polling.
"""
