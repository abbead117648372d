"""Every gRPC method of the server: its path, its category and the function that answers it."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Iterable
from functools import partial
from typing import Any

from google.protobuf.message import Message

from core.control import OPERATIONS
from core.errors import unsupported
from core.server import InferenceServer
from frontends.grpc.call import GrpcCall
from frontends.grpc.extra_methods import GrpcMethods, unary
from frontends.grpc.interceptors import intercepted, naming_caller, restrictions
from frontends.grpc.method import Method, StreamMethod, UnaryFunction, UnaryMethod
from frontends.grpc.options import GrpcOptions
from frontends.grpc.protocol import messages
from frontends.grpc.protocol.health_messages import HealthCheckRequest
from frontends.grpc.requests_in_flight import RequestsInFlight
from frontends.grpc.services import control, health, metadata, repository, settings, shared_memory
from frontends.grpc.services.inbound import Inbound
from frontends.grpc.services.infer import InferService, MeteredInferService
from frontends.grpc.services.stream import StreamService
from frontends.shared.context import context_of
from frontends.shared.interceptors import Interceptors
from frontends.shared.json_operations import offered
from frontends.shared.load_reports import LoadReports

Service = Callable[[InferenceServer, Any], Awaitable[Message]]
"""What answers a decoded request."""

_V2 = "/inference.GRPCInferenceService/"
_HEALTH = "/grpc.health.v1.Health/"


def _operation(path: str, names: str, function: UnaryFunction, **more: Any) -> UnaryMethod:
    """Return a method that calls control operations.

    names   their names, separated by blanks; the first one defines the category and the default of `changes`
    more    attributes of UnaryMethod
    """
    operations = tuple(names.split())
    operation = OPERATIONS[operations[0]]
    if operation.changes:
        function = naming_caller(function)
    known = {"changes": operation.changes, **more}
    return UnaryMethod(path, operation.category, function, operations=operations, **known)


def _generic(server: InferenceServer, rows: Iterable[Method]) -> tuple[Method, ...]:
    """Return a method for each offered control operation that no method in `rows` calls."""
    areas = server.control.areas
    served = {name for row in rows if isinstance(row, UnaryMethod) for name in row.operations}
    return tuple(
        _operation(control.path_of(each), each.name, control.service(areas, each))
        for each in offered(areas.values(), served)
    )


def _refuse_watch(requests: AsyncIterator[bytes], call: GrpcCall) -> AsyncGenerator[bytes, None]:
    raise unsupported("Health/Watch is not supported; call Health/Check.")


def methods(server: InferenceServer, intake: RequestsInFlight) -> dict[str, Method]:
    """Return path → method, for all methods, with the interceptors of the server.

    intake   counts the inference requests, for the end of the server
    """
    context = context_of(server)
    inbound = Inbound(server)
    interceptors = Interceptors(context)
    service = MeteredInferService if interceptors.needed else InferService
    infer = service(server, inbound, intake)
    stream = StreamService(server, inbound, intake, context.access_log)
    reported: dict[str, Any] = {"compress": True, "load": LoadReports.of(server)}

    def v2(name: str, subject: str, service: Service, **more: Any) -> UnaryMethod:
        """Return the method `name` of the v2 protocol, which `service` answers.

        subject   names of control operations, which have a dot, as in `_operation`; or else its category
        """
        function = unary(getattr(messages, f"{name}Request"), partial(service, server))
        if "." in subject:
            return _operation(_V2 + name, subject, function, **more)
        return UnaryMethod(_V2 + name, subject, function, **more)

    check = unary(HealthCheckRequest, partial(health.check, server))
    # fmt: off
    rows: tuple[Method, ...] = (
        _operation(_HEALTH + "Check", "health.ready", check),
        StreamMethod(_HEALTH + "Watch", "health", _refuse_watch),
        v2("ServerLive", "health.live", health.server_live),
        v2("ServerReady", "health.ready", health.server_ready),
        v2("ModelReady", "health.model_ready", health.model_ready),
        v2("ServerMetadata", "metadata", metadata.server_metadata),
        v2("ModelMetadata", "metadata", metadata.model_metadata),
        v2("ModelConfig", "model-config", metadata.model_config),
        v2("ModelStatistics", "health.statistics", metadata.model_statistics),
        UnaryMethod(_V2 + "ModelInfer", "inference", infer.model_infer, begin=infer.begin, **reported),
        StreamMethod(_V2 + "ModelStreamInfer", "inference", stream.model_stream_infer, **reported),
        v2("RepositoryIndex", "repository.index", repository.index),
        v2("RepositoryModelLoad", "repository.load", repository.load),
        v2("RepositoryModelUnload", "repository.unload", repository.unload),
        v2("SystemSharedMemoryStatus", "memory.status", shared_memory.system_status),
        v2("SystemSharedMemoryRegister", "memory.register", shared_memory.system_register),
        v2("SystemSharedMemoryUnregister", "memory.unregister", shared_memory.system_unregister),
        v2("CudaSharedMemoryStatus", "memory.cuda_status", shared_memory.cuda_status),
        v2("CudaSharedMemoryRegister", "memory.register_cuda", shared_memory.cuda_register),
        v2("CudaSharedMemoryUnregister", "memory.unregister_cuda", shared_memory.cuda_unregister),
        v2("TraceSetting", "settings.change_trace_settings settings.trace_settings", settings.trace,
            changes=partial(settings.changes, messages.TraceSettingRequest)),
        v2("LogSettings", "settings.change_log_settings settings.log_settings", settings.log,
            changes=partial(settings.changes, messages.LogSettingsRequest)),
    )
    # fmt: on
    required = restrictions(GrpcOptions.of(server.options).grpc_restricted_protocol)
    rows += _generic(server, rows)
    # Of two methods with the same path, the last one counts.
    rows = (*GrpcMethods.of(server).read(intake), *rows)
    return {row.path: intercepted(row, interceptors, required) for row in rows}
