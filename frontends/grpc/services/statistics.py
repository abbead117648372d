"""ModelStatistics."""

from __future__ import annotations

from typing import Any

from core.config.model_version import parse_version
from core.server import InferenceServer
from frontends.grpc.call import GrpcCall
from frontends.grpc.protocol.decode import decode
from frontends.grpc.protocol.messages import (
    InferResponseStatistics,
    ModelStatistics,
    ModelStatisticsRequest,
    ModelStatisticsResponse,
)


class StatisticsService:
    """Statistics of one model, or of all. Call from the event loop only."""

    def __init__(self, server: InferenceServer):
        self._server = server

    async def model_statistics(self, data: bytes, call: GrpcCall) -> bytes:
        request = decode(ModelStatisticsRequest, data)
        version = parse_version(request.version)
        entries = await self._server.control.health.statistics(request.name, version)
        return ModelStatisticsResponse(model_stats=map(_entry, entries)).SerializeToString()


def _entry(entry: dict[str, Any]) -> ModelStatistics:
    responses = {
        key: InferResponseStatistics(**durations)
        for key, durations in entry["response_stats"].items()
    }
    # The message has no field for the namespace.
    known = {key: entry[key] for key in entry if key != "namespace"}
    return ModelStatistics(**{**known, "response_stats": responses})
