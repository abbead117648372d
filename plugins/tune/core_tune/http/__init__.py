"""The route that tunes a model of this server: POST /v2/models/{model}/tune.

request ─► [TuneRequest] ─► ProcessEvents of core-bench ─► a process with [worker] ─► events
"""
