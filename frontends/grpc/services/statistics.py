"""ModelStatistics."""

from __future__ import annotations

from core.server import Server, parse_version
from frontends.grpc.call import Call
from frontends.grpc.protocol.decode import decode
from frontends.grpc.protocol.messages import ModelStatisticsRequest, ModelStatisticsResponse


class StatisticsService:
    """Counters of one model, or of all. Loop thread only."""

    def __init__(self, server: Server):
        self._server = server

    async def model_statistics(self, data: bytes, call: Call) -> bytes:
        request = decode(ModelStatisticsRequest, data)
        version = parse_version(request.version)
        response = ModelStatisticsResponse()
        for entry in self._server.statistics(request.name, version):
            responses = entry.pop("response_stats", {})
            statistics = response.model_stats.add(**entry)
            for key, durations in responses.items():
                for name, duration in durations.items():
                    getattr(statistics.response_stats[key], name).MergeFrom(duration)
        return response.SerializeToString()
