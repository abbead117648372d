"""ServerMetadata, ModelMetadata, ModelConfig, ModelStatistics."""

from __future__ import annotations

from typing import Any

from core.config.model_version import parse_version
from core.server import InferenceServer
from frontends.grpc.protocol import messages


async def server_metadata(
    server: InferenceServer, request: messages.ServerMetadataRequest
) -> messages.ServerMetadataResponse:
    return messages.ServerMetadataResponse(**server.metadata())


async def model_metadata(
    server: InferenceServer, request: messages.ModelMetadataRequest
) -> messages.ModelMetadataResponse:
    metadata = server.models.metadata(request.name, parse_version(request.version))
    return messages.ModelMetadataResponse(**metadata)


async def model_config(
    server: InferenceServer, request: messages.ModelConfigRequest
) -> messages.ModelConfigResponse:
    config = server.models.config(request.name, parse_version(request.version))
    return messages.ModelConfigResponse(config=config)


async def model_statistics(
    server: InferenceServer, request: messages.ModelStatisticsRequest
) -> messages.ModelStatisticsResponse:
    version = parse_version(request.version)
    entries = await server.control.health.statistics(request.name, version)
    return messages.ModelStatisticsResponse(model_stats=map(_statistics, entries))


def _statistics(entry: dict[str, Any]) -> messages.ModelStatistics:
    responses = {
        key: messages.InferResponseStatistics(**durations)
        for key, durations in entry["response_stats"].items()
    }
    # The message has no field for the namespace.
    known = {key: entry[key] for key in entry if key != "namespace"}
    return messages.ModelStatistics(**{**known, "response_stats": responses})
