"""ServerMetadata, ModelMetadata, ModelConfig."""

from __future__ import annotations

from core.config.model_version import parse_version
from core.server import InferenceServer
from frontends.grpc.call import GrpcCall
from frontends.grpc.protocol.decode import decode
from frontends.grpc.protocol.messages import (
    ModelConfigRequest,
    ModelConfigResponse,
    ModelMetadataRequest,
    ModelMetadataResponse,
    ServerMetadataRequest,
    ServerMetadataResponse,
)


class MetadataService:
    """Metadata of server and models, and configurations. Call from the event loop only."""

    def __init__(self, server: InferenceServer):
        self._server = server

    async def server_metadata(self, data: bytes, call: GrpcCall) -> bytes:
        decode(ServerMetadataRequest, data)
        return ServerMetadataResponse(**self._server.metadata()).SerializeToString()

    async def model_metadata(self, data: bytes, call: GrpcCall) -> bytes:
        request = decode(ModelMetadataRequest, data)
        version = parse_version(request.version)
        metadata = self._server.models.metadata(request.name, version)
        return ModelMetadataResponse(**metadata).SerializeToString()

    async def model_config(self, data: bytes, call: GrpcCall) -> bytes:
        request = decode(ModelConfigRequest, data)
        version = parse_version(request.version)
        config = self._server.models.config(request.name, version)
        return ModelConfigResponse(config=config).SerializeToString()
