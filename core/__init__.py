"""A model server: any Triton model repository, any KServe v2 client, backends as separate packages.

Backend authors need only these names; `core.backend` explains them. Server runs a server inside a Python
program; an entry point of group `core.api` provides it. Each name is imported when it is first used: a
process that only starts others needs no numpy.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from core.backend import Backend, Device, MemoryUsage, Model, ModelInstance
    from core.batch import Batch
    from core.errors import CoreError, Fatal, Kind
    from core.hookspecs import hookimpl
    from core.repository.agents import RepositoryAgent
    from core.request import DeviceOutput, InferenceRequest, RequestedOutput
    from core.response import InferenceResponse, Reply
    from core.system.host_policy import HostPolicy
    from core.tensor import Tensor
    from core.version import __version__
    from frontends.in_process import Server


__all__ = [
    "Backend",
    "Batch",
    "CoreError",
    "Device",
    "DeviceOutput",
    "Fatal",
    "HostPolicy",
    "InferenceRequest",
    "InferenceResponse",
    "Kind",
    "MemoryUsage",
    "Model",
    "ModelInstance",
    "Reply",
    "RepositoryAgent",
    "RequestedOutput",
    "Server",
    "Tensor",
    "__version__",
    "hookimpl",
]

_HOMES = {
    "backend": ("Backend", "Device", "MemoryUsage", "Model", "ModelInstance"),
    "batch": ("Batch",),
    "errors": ("CoreError", "Fatal", "Kind"),
    "hookspecs": ("hookimpl",),
    "system.host_policy": ("HostPolicy",),
    "repository.agents": ("RepositoryAgent",),
    "request": ("DeviceOutput", "InferenceRequest", "RequestedOutput"),
    "response": ("InferenceResponse", "Reply"),
    "tensor": ("Tensor",),
    "version": ("__version__",),
}
_BY_ENTRY_POINT = ("Server",)

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """Import and return the object of a name in __all__, or a module that defines such objects."""
        if name in _HOMES:
            return import_module(f"core.{name}")
        for home, names in _HOMES.items():
            if name in names:
                found = globals()[name] = getattr(import_module(f"core.{home}"), name)
                return found
        if name in _BY_ENTRY_POINT:
            found = globals()[name] = import_module("core.plugins").api(name)
            return found
        raise AttributeError(f"module 'core' has no attribute '{name}'")
