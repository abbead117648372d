"""What speaks to clients: http (aiohttp), grpc (grpcio), metrics. Each only knows core.server."""
