"""Every method of the protocol: its path, its category and the function that answers it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from core.control import OPERATIONS
from core.server import InferenceServer
from frontends.grpc.interceptors import intercepted, naming_caller, restrictions
from frontends.grpc.method import Method, StreamMethod, UnaryFunction, UnaryMethod
from frontends.grpc.options import GrpcOptions
from frontends.grpc.requests_in_flight import RequestsInFlight
from frontends.grpc.services.control import ControlService, path_of
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
from frontends.shared.json_operations import offered

_V2 = "/inference.GRPCInferenceService/"
_HEALTH = "/grpc.health.v1.Health/"


def _operation(path: str, names: str, function: UnaryFunction, **more: Any) -> UnaryMethod:
    """Return the method for control operations.

    names   separated by blanks; the first one defines the category, and whether the method changes anything
    """
    operations = tuple(names.split())
    operation = OPERATIONS[operations[0]]
    if operation.changes:
        function = naming_caller(function)
    known = {"changes": operation.changes, **more}
    return UnaryMethod(path, operation.category, function, operations=operations, **known)


def _generic(server: InferenceServer, rows: Iterable[Method]) -> tuple[Method, ...]:
    """Return methods for the control operations that the protocol has none for."""
    areas = server.control.areas
    served = {name for row in rows if isinstance(row, UnaryMethod) for name in row.operations}
    return tuple(
        _operation(path_of(each), each.name, ControlService(areas, each).call)
        for each in offered(areas.values(), served)
    )


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
        _operation(_HEALTH + "Check", "health.ready", health.check),
        StreamMethod(_HEALTH + "Watch", "health", no_watch),
        _operation(_V2 + "ServerLive", "health.live", health.server_live),
        _operation(_V2 + "ServerReady", "health.ready", health.server_ready),
        _operation(_V2 + "ModelReady", "health.model_ready", health.model_ready),
        UnaryMethod(_V2 + "ServerMetadata", "metadata", metadata.server_metadata),
        UnaryMethod(_V2 + "ModelMetadata", "metadata", metadata.model_metadata),
        UnaryMethod(_V2 + "ModelConfig", "model-config", metadata.model_config),
        _operation(_V2 + "ModelStatistics", "health.statistics", statistics.model_statistics),
        UnaryMethod(_V2 + "ModelInfer", "inference", infer.model_infer, compress=True, begin=infer.begin),
        StreamMethod(_V2 + "ModelStreamInfer", "inference", stream.model_stream_infer, compress=True),
        _operation(_V2 + "RepositoryIndex", "repository.index", repository.index),
        _operation(_V2 + "RepositoryModelLoad", "repository.load", repository.load),
        _operation(_V2 + "RepositoryModelUnload", "repository.unload", repository.unload),
        _operation(_V2 + "SystemSharedMemoryStatus", "memory.status", system.status),
        _operation(_V2 + "SystemSharedMemoryRegister", "memory.register", system.register),
        _operation(_V2 + "SystemSharedMemoryUnregister", "memory.unregister", system.unregister),
        _operation(_V2 + "CudaSharedMemoryStatus", "memory.cuda_status", cuda.status),
        _operation(_V2 + "CudaSharedMemoryRegister", "memory.register_cuda", cuda.register),
        _operation(_V2 + "CudaSharedMemoryUnregister", "memory.unregister_cuda", cuda.unregister),
        _operation(
            _V2 + "TraceSetting",
            "settings.change_trace_settings settings.trace_settings",
            trace.trace_setting,
            changes=trace.changes,
        ),
        _operation(
            _V2 + "LogSettings",
            "settings.change_log_settings settings.log_settings",
            log.log_settings,
            changes=log.changes,
        ),
    )
    # fmt: on
    interceptors = Interceptors(context)
    required = restrictions(GrpcOptions.of(server.options).grpc_restricted_protocol)
    rows += _generic(server, rows)
    return {row.path: intercepted(row, interceptors, required) for row in rows}
