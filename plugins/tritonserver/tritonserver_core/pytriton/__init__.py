"""PyTriton's `Triton().bind(…)`, on core: functions of a program as models, without a second process.

    from tritonserver_core.pytriton import DynamicBatcher, ModelConfig, Tensor, Triton, batch

Modules and names are PyTriton's: `pytriton.decorators` becomes `tritonserver_core.pytriton.decorators`. The
clients and RemoteTriton of nvidia-pytriton work with any server, so they are not here.
"""

from tritonserver_core.pytriton.decorators import (
    ConstantPadder,
    batch,
    fill_optionals,
    first_value,
    group_by_keys,
    group_by_values,
    pad_batch,
    sample,
    triton_context,
)
from tritonserver_core.pytriton.exceptions import (
    PyTritonBadParameterError,
    PyTritonError,
    PyTritonInvalidOperationError,
    PyTritonModelConfigError,
    PyTritonRuntimeError,
    PyTritonUnrecoverableError,
    PyTritonValidationError,
)
from tritonserver_core.pytriton.model_config import (
    DeviceKind,
    DynamicBatcher,
    ModelConfig,
    ModelWarmup,
    QueuePolicy,
    Tensor,
    TimeoutAction,
    WarmupInput,
)
from tritonserver_core.pytriton.request import Request
from tritonserver_core.pytriton.triton import Triton
from tritonserver_core.pytriton.triton_config import (
    TritonConfig,
    TritonLifecyclePolicy,
    TritonSecurityConfig,
)

__all__ = [
    "ConstantPadder",
    "DeviceKind",
    "DynamicBatcher",
    "ModelConfig",
    "ModelWarmup",
    "PyTritonBadParameterError",
    "PyTritonError",
    "PyTritonInvalidOperationError",
    "PyTritonModelConfigError",
    "PyTritonRuntimeError",
    "PyTritonUnrecoverableError",
    "PyTritonValidationError",
    "QueuePolicy",
    "Request",
    "Tensor",
    "TimeoutAction",
    "Triton",
    "TritonConfig",
    "TritonLifecyclePolicy",
    "TritonSecurityConfig",
    "WarmupInput",
    "batch",
    "fill_optionals",
    "first_value",
    "group_by_keys",
    "group_by_values",
    "pad_batch",
    "sample",
    "triton_context",
]
