"""The compiled part of Triton's triton_python_backend_utils, which some models import by this name."""

# ruff: noqa: F401 - models use what is imported here

from backend_python.api.errors import TritonError, TritonModelException
from backend_python.api.iterator import ResponseIterator
from backend_python.api.logger import Logger
from backend_python.api.metrics import Metric, MetricFamily
from backend_python.api.models import is_model_ready, load_model, unload_model
from backend_python.api.request import (
    InferenceRequest,
    InferenceTrace,
    MemoryType,
    PreferredMemory,
)
from backend_python.api.response import InferenceResponse
from backend_python.api.sender import InferenceResponseSender
from backend_python.api.tensor import Tensor

TRITONSERVER_MEMORY_GPU = MemoryType.TRITONSERVER_MEMORY_GPU
TRITONSERVER_MEMORY_CPU = MemoryType.TRITONSERVER_MEMORY_CPU

__all__ = [name for name in dir() if not name.startswith("_")]
