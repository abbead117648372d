"""A model server: any Triton model repository, any KServe v2 client, backends as separate packages.

What a backend author needs is here; `core.backend` explains it.
"""

from core.backend import Backend, Device, Model, ModelInstance
from core.batch import Batch
from core.errors import CoreError, Fatal, Kind
from core.hookspecs import hookimpl
from core.request import InferenceRequest, RequestedOutput
from core.response import InferenceResponse, Reply
from core.tensor import Tensor

__version__ = "0.1.0"

__all__ = [
    "Backend",
    "Batch",
    "CoreError",
    "Device",
    "Fatal",
    "InferenceRequest",
    "InferenceResponse",
    "Kind",
    "Model",
    "ModelInstance",
    "Reply",
    "RequestedOutput",
    "Tensor",
    "__version__",
    "hookimpl",
]
