"""A model server: any Triton model repository, any KServe v2 client, backends as separate packages.

What a backend author needs is here; `core.backend` explains it. Server is for programs that ask models
in their own process (core/embedded). Each name is imported when it is first used: a process that only
starts others needs no numpy.
"""

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from core.backend import Backend, Device, MemoryUsage, Model, ModelInstance
    from core.batch import Batch
    from core.embedded import Server
    from core.errors import CoreError, Fatal, Kind
    from core.hookspecs import hookimpl
    from core.host_policy import HostPolicy
    from core.repository.agents import RepositoryAgent
    from core.request import DeviceOutput, InferenceRequest, RequestedOutput
    from core.response import InferenceResponse, Reply
    from core.tensor import Tensor

__version__ = "0.1.0"

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
    "embedded": ("Server",),
    "errors": ("CoreError", "Fatal", "Kind"),
    "hookspecs": ("hookimpl",),
    "host_policy": ("HostPolicy",),
    "repository.agents": ("RepositoryAgent",),
    "request": ("DeviceOutput", "InferenceRequest", "RequestedOutput"),
    "response": ("InferenceResponse", "Reply"),
    "tensor": ("Tensor",),
}

if not TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        """A name of __all__, or one of the modules that they come from."""
        if name in _HOMES:
            return import_module(f"core.{name}")
        for home, names in _HOMES.items():
            if name in names:
                found = globals()[name] = getattr(import_module(f"core.{home}"), name)
                return found
        raise AttributeError(f"module 'core' has no attribute '{name}'")
