"""RepositoryIndex, RepositoryModelLoad, RepositoryModelUnload."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any, TypeVar

from core.errors import invalid, unsupported
from core.server import InferenceServer
from frontends.grpc.protocol import messages
from frontends.grpc.protocol.parameters import boolean, kind

T = TypeVar("T")

_DEPENDENTS = "unload_dependents"


async def index(
    server: InferenceServer, request: messages.RepositoryIndexRequest
) -> messages.RepositoryIndexResponse:
    _refuse_name(request.repository_name)
    models = await server.control.repository.index(request.ready)
    # The message has no field for the namespace, which HTTP shows.
    known = [{key: each[key] for key in each if key != "namespace"} for each in models]
    return messages.RepositoryIndexResponse(models=known)


async def load(
    server: InferenceServer, request: messages.RepositoryModelLoadRequest
) -> messages.RepositoryModelLoadResponse:
    """Load a model, with the `config` and files in the parameters, and return when it is ready.

    The load continues if the client disconnects. Raises CoreError if it fails, for a wrong parameter, and for
    the name of a repository.
    """
    _refuse_name(request.repository_name)
    overrides = {name: _override(name, each) for name, each in request.parameters.items()}
    await to_the_end(server.control.repository.load(request.model_name, overrides))
    return messages.RepositoryModelLoadResponse()


async def unload(
    server: InferenceServer, request: messages.RepositoryModelUnloadRequest
) -> messages.RepositoryModelUnloadResponse:
    _refuse_name(request.repository_name)
    dependents = False
    if _DEPENDENTS in request.parameters:
        dependents = boolean(_DEPENDENTS, request.parameters[_DEPENDENTS])
    await to_the_end(server.control.repository.unload(request.model_name, dependents))
    return messages.RepositoryModelUnloadResponse()


async def to_the_end(work: Coroutine[Any, Any, T]) -> T:
    """Await `work` and return its result. If the caller is cancelled meanwhile, `work` continues.

    Its result or error is then dropped.
    """
    task = asyncio.ensure_future(work)
    try:
        return await asyncio.shield(task)
    except asyncio.CancelledError:
        task.add_done_callback(lambda done: done.cancelled() or done.exception())
        raise


def _refuse_name(repository_name: str) -> None:
    if repository_name:
        raise unsupported("'repository_name' specification is not supported")


def _override(name: str, parameter: messages.ModelRepositoryParameter) -> Any:
    """Return the value of a load parameter: str for `config`, bytes for `file:<path>`.

    Raises CoreError(INVALID) for another name and for another type.
    """
    if name == "config":
        expected = "string_param"
    elif name.startswith("file:"):
        expected = "bytes_param"
    else:
        raise invalid(f"unrecognized load parameter '{name}'.")
    if kind(parameter) != expected:
        raise invalid(f"invalid value type for load parameter '{name}', expected {expected}.")
    return getattr(parameter, expected)
