"""Frontends: http (aiohttp), grpc (grpcio), metrics, memory, in_process. Each calls core.server only."""
