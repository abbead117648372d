"""Every method of the protocol: its path, its category and the function that answers it."""

from __future__ import annotations

from core.server import InferenceServer
from frontends.grpc.interceptors import intercepted, restrictions
from frontends.grpc.method import Method, StreamMethod, UnaryMethod
from frontends.grpc.requests_in_flight import RequestsInFlight
from frontends.grpc.services.health import HealthService
from frontends.grpc.services.inbound import Inbound
from frontends.grpc.services.infer import InferService
from frontends.grpc.services.log import LogService
from frontends.grpc.services.metadata import MetadataService
from frontends.grpc.services.repository import RepositoryService
from frontends.grpc.services.shared_memory import CudaMemoryService, SystemMemoryService
from frontends.grpc.services.statistics import StatisticsService
from frontends.grpc.services.stream import StreamService
from frontends.grpc.services.trace import TraceService
from frontends.grpc.services.unsupported import refusing_stream
from frontends.shared.context import context_of
from frontends.shared.interceptors import Interceptors

_V2 = "/inference.GRPCInferenceService/"
_HEALTH = "/grpc.health.v1.Health/"


def methods(server: InferenceServer, intake: RequestsInFlight) -> dict[str, Method]:
    """Return path → method, behind the interceptors of the server."""
    context = context_of(server)
    health = HealthService(server)
    metadata = MetadataService(server)
    statistics = StatisticsService(server)
    repository = RepositoryService(server)
    log = LogService(server)
    inbound = Inbound(server)
    infer = InferService(server, inbound, intake)
    stream = StreamService(server, inbound, intake, context.access_log)
    system, cuda = SystemMemoryService(server), CudaMemoryService(server)
    trace = TraceService(server)
    no_watch = refusing_stream("Health/Watch is not supported; call Health/Check.")
    # fmt: off
    rows: tuple[Method, ...] = (
        UnaryMethod(_HEALTH + "Check", "health", health.check),
        StreamMethod(_HEALTH + "Watch", "health", no_watch),
        UnaryMethod(_V2 + "ServerLive", "health", health.server_live),
        UnaryMethod(_V2 + "ServerReady", "health", health.server_ready),
        UnaryMethod(_V2 + "ModelReady", "health", health.model_ready),
        UnaryMethod(_V2 + "ServerMetadata", "metadata", metadata.server_metadata),
        UnaryMethod(_V2 + "ModelMetadata", "metadata", metadata.model_metadata),
        UnaryMethod(_V2 + "ModelConfig", "model-config", metadata.model_config),
        UnaryMethod(_V2 + "ModelStatistics", "statistics", statistics.model_statistics),
        UnaryMethod(_V2 + "ModelInfer", "inference", infer.model_infer, compress=True, begin=infer.begin),
        StreamMethod(_V2 + "ModelStreamInfer", "inference", stream.model_stream_infer, compress=True),
        UnaryMethod(_V2 + "RepositoryIndex", "model-repository", repository.index, changes=False),
        UnaryMethod(_V2 + "RepositoryModelLoad", "model-repository", repository.load),
        UnaryMethod(_V2 + "RepositoryModelUnload", "model-repository", repository.unload),
        UnaryMethod(_V2 + "SystemSharedMemoryStatus", "shared-memory", system.status, changes=False),
        UnaryMethod(_V2 + "SystemSharedMemoryRegister", "shared-memory", system.register),
        UnaryMethod(_V2 + "SystemSharedMemoryUnregister", "shared-memory", system.unregister),
        UnaryMethod(_V2 + "CudaSharedMemoryStatus", "shared-memory", cuda.status, changes=False),
        UnaryMethod(_V2 + "CudaSharedMemoryRegister", "shared-memory", cuda.register),
        UnaryMethod(_V2 + "CudaSharedMemoryUnregister", "shared-memory", cuda.unregister),
        UnaryMethod(_V2 + "TraceSetting", "trace", trace.trace_setting, changes=trace.changes),
        UnaryMethod(_V2 + "LogSettings", "logging", log.log_settings, changes=log.changes),
    )
    # fmt: on
    interceptors = Interceptors(context)
    required = restrictions(server.options.grpc_restricted_protocol)
    return {row.path: intercepted(row, interceptors, required) for row in rows}
