"""The module that a Triton model.py imports. Its parts are in backend_python.api."""

# ruff: noqa: F401 - models use what is imported here

import json
import struct

import numpy as np
from backend_python.api.datatypes import (
    TRITON_STRING_TO_NUMPY,
    numpy_to_triton_type,
    triton_string_to_numpy,
    triton_to_numpy_type,
)
from backend_python.api.errors import TritonError, TritonModelException
from backend_python.api.logger import Logger
from backend_python.api.lookup import (
    get_input_config_by_name,
    get_input_tensor_by_name,
    get_output_config_by_name,
    get_output_tensor_by_name,
    using_decoupled_model_transaction_policy,
)
from backend_python.api.metrics import Metric, MetricFamily
from backend_python.api.model_config import ModelConfig
from backend_python.api.models import get_model_dir, is_model_ready, load_model, unload_model
from backend_python.api.request import (
    TRITONSERVER_REQUEST_FLAG_SEQUENCE_END,
    TRITONSERVER_REQUEST_FLAG_SEQUENCE_START,
    TRITONSERVER_REQUEST_RELEASE_ALL,
    TRITONSERVER_REQUEST_RELEASE_RESCHEDULE,
    InferenceRequest,
    InferenceTrace,
    MemoryType,
    PreferredMemory,
)
from backend_python.api.response import InferenceResponse
from backend_python.api.sender import (
    TRITONSERVER_RESPONSE_COMPLETE_FINAL,
    InferenceResponseSender,
)
from backend_python.api.tensor import Tensor
from backend_python.strings import deserialize_bytes_tensor, serialize_byte_tensor
from backend_python.uncompiled import open_to_changes as _open_to_changes

TRITONSERVER_MEMORY_GPU = MemoryType.TRITONSERVER_MEMORY_GPU
TRITONSERVER_MEMORY_CPU = MemoryType.TRITONSERVER_MEMORY_CPU

for _class in (Tensor, InferenceRequest, InferenceResponse):
    _open_to_changes(_class)

__all__ = [name for name in dir() if not name.startswith("_")]
