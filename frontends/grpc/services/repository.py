"""RepositoryIndex, RepositoryModelLoad, RepositoryModelUnload."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from core.errors import invalid, unsupported
from core.server import InferenceServer
from frontends.grpc.call import GrpcCall
from frontends.grpc.protocol.decode import decode
from frontends.grpc.protocol.messages import (
    ModelRepositoryParameter,
    RepositoryIndexRequest,
    RepositoryIndexResponse,
    RepositoryModelLoadRequest,
    RepositoryModelLoadResponse,
    RepositoryModelUnloadRequest,
    RepositoryModelUnloadResponse,
)

T = TypeVar("T")

_DEPENDENTS = "unload_dependents"


class RepositoryService:
    """List, load and unload models. Call from the event loop only."""

    def __init__(self, server: InferenceServer):
        self._server = server

    async def index(self, data: bytes, call: GrpcCall) -> bytes:
        request = decode(RepositoryIndexRequest, data)
        _refuse_name(request.repository_name)
        models = await self._server.control.repository.index(request.ready)
        # The message has no field for the namespace, which HTTP shows.
        known = [{key: each[key] for key in each if key != "namespace"} for each in models]
        return RepositoryIndexResponse(models=known).SerializeToString()

    async def load(self, data: bytes, call: GrpcCall) -> bytes:
        """Load a model and return when it is ready. The load continues if the client disconnects."""
        request = decode(RepositoryModelLoadRequest, data)
        _refuse_name(request.repository_name)
        overrides = {name: _override(name, each) for name, each in request.parameters.items()}
        await to_the_end(self._server.control.repository.load(request.model_name, overrides))
        return RepositoryModelLoadResponse().SerializeToString()

    async def unload(self, data: bytes, call: GrpcCall) -> bytes:
        request = decode(RepositoryModelUnloadRequest, data)
        _refuse_name(request.repository_name)
        dependents = False
        if _DEPENDENTS in request.parameters:
            parameter = request.parameters[_DEPENDENTS]
            if _kind(parameter) != "bool_param":
                raise invalid(
                    f"invalid value type for '{_DEPENDENTS}' parameter, expected bool_param."
                )
            dependents = parameter.bool_param
        await to_the_end(self._server.control.repository.unload(request.model_name, dependents))
        return RepositoryModelUnloadResponse().SerializeToString()


async def to_the_end(work: Coroutine[Any, Any, T]) -> T:
    """Await `work`. If the caller is cancelled meanwhile, `work` continues."""
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        task.add_done_callback(lambda done: done.cancelled() or done.exception())
        raise


def _refuse_name(repository_name: str) -> None:
    if repository_name:
        raise unsupported("'repository_name' specification is not supported")


def _kind(parameter: ModelRepositoryParameter) -> str | None:
    which: str | None = parameter.WhichOneof("parameter_choice")
    return which


def _override(name: str, parameter: ModelRepositoryParameter) -> Any:
    """Return the value of a load parameter: str for `config`, bytes for `file:<path>`.

    Raises CoreError(INVALID) for another name and for another type.
    """
    if name == "config":
        expected = "string_param"
    elif name.startswith("file:"):
        expected = "bytes_param"
    else:
        raise invalid(f"unrecognized load parameter '{name}'.")
    if _kind(parameter) != expected:
        raise invalid(f"invalid value type for load parameter '{name}', expected {expected}.")
    return getattr(parameter, expected)
