"""The route that measures a model of this server: POST /v2/models/{model}/bench.

request ─► [BenchRequest] ─► [ProcessEvents] ─► a process with [worker] ─► events
"""
