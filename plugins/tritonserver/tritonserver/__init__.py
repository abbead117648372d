"""Triton's module `tritonserver`, on core: a model server inside a Python program.

    server = tritonserver.Server(model_repository="models/").start(wait_until_ready=True)
    for response in server.model("m").infer(inputs={"x": array}):
        y = numpy.from_dlpack(response.outputs["y"])

Names, arguments and errors are those of Triton's module, so programs that embed Triton run unchanged.
docs/start/drop-in.md has the differences. New programs may prefer `core.Server`.
"""

from core.version import __version__
from tritonserver import _api, _c
from tritonserver._api._allocators import MemoryAllocator, default_memory_allocators
from tritonserver._api._enums import (
    DataType,
    DLDeviceType,
    InstanceGroupKind,
    LogFormat,
    LogLevel,
    MemoryType,
    MetricFormat,
    MetricKind,
    ModelBatchFlag,
    ModelControlMode,
    ModelTxnPropertyFlag,
    RateLimitMode,
)
from tritonserver._api._errors import (
    AlreadyExistsError,
    InternalError,
    InvalidArgumentError,
    NotFoundError,
    TritonError,
    UnavailableError,
    UnknownError,
    UnsupportedError,
)
from tritonserver._api._logging import LogCallback, LogMessage
from tritonserver._api._memorybuffer import DeviceOrMemoryType, MemoryBuffer
from tritonserver._api._metrics import Metric, MetricFamily
from tritonserver._api._model import Model
from tritonserver._api._options import ModelLoadDeviceLimit, Options, RateLimiterResource
from tritonserver._api._request import InferenceRequest
from tritonserver._api._response import AsyncResponseIterator, InferenceResponse, ResponseIterator
from tritonserver._api._server import ModelDictionary, Server
from tritonserver._api._tensor import Tensor

__all__ = [
    "AlreadyExistsError",
    "AsyncResponseIterator",
    "DLDeviceType",
    "DataType",
    "DeviceOrMemoryType",
    "InferenceRequest",
    "InferenceResponse",
    "InstanceGroupKind",
    "InternalError",
    "InvalidArgumentError",
    "LogCallback",
    "LogFormat",
    "LogLevel",
    "LogMessage",
    "MemoryAllocator",
    "MemoryBuffer",
    "MemoryType",
    "Metric",
    "MetricFamily",
    "MetricFormat",
    "MetricKind",
    "Model",
    "ModelBatchFlag",
    "ModelControlMode",
    "ModelDictionary",
    "ModelLoadDeviceLimit",
    "ModelTxnPropertyFlag",
    "NotFoundError",
    "Options",
    "RateLimitMode",
    "RateLimiterResource",
    "ResponseIterator",
    "Server",
    "Tensor",
    "TritonError",
    "UnavailableError",
    "UnknownError",
    "UnsupportedError",
    "__version__",
    "_api",
    "_c",
    "default_memory_allocators",
]
