"""The options of a session: threads, placement, memory of GPUs, optimization.  Imports TensorFlow.

config.pbtxt, --backend-config ─► [session_options] ─► ConfigProto.
"""

from __future__ import annotations

from typing import Any

from backend_tensorflow.framework import v1
from backend_tensorflow.settings import ServerSettings, Settings
from core.backend import Device
from core.config import ModelConfig
from core.errors import invalid, unsupported

_MIXED = "auto_mixed_precision"


def session_options(
    config: ModelConfig, settings: Settings, server: ServerSettings, device: Device
) -> Any:
    """Return the ConfigProto of a session on a device. Raises CoreError for an unknown accelerator."""
    options = v1.ConfigProto(
        allow_soft_placement=server.soft_placement,
        intra_op_parallelism_threads=settings.intra_threads,
        inter_op_parallelism_threads=settings.inter_threads,
        use_per_session_threads=settings.own_threads,
    )
    if device.kind == "CPU":
        options.device_count["GPU"] = 0
    if server.memory_fraction:
        options.gpu_options.per_process_gpu_memory_fraction = server.memory_fraction
    else:
        options.gpu_options.allow_growth = True
    _optimize(options.graph_options, config)
    return options


def place_of(device: Device) -> str | None:
    """Return the device of operators that name none; None to let TensorFlow choose."""
    return f"/device:GPU:{device.id}" if device.kind == "GPU" else None


def _optimize(options: Any, config: ModelConfig) -> None:
    """Set optimization.graph.level as Triton does: -1 for none, 1 and 2 for XLA; and accelerators."""
    level, optimizer = config.optimization.graph.level, options.optimizer_options
    if level < 0:
        optimizer.opt_level = optimizer.L0
        options.rewrite_options.disable_meta_optimizer = True
    if level > 0:
        optimizer.global_jit_level = optimizer.ON_1 if level == 1 else optimizer.ON_2
    accelerators = config.optimization.execution_accelerators
    for each in [*accelerators.gpu_execution_accelerator, *accelerators.cpu_execution_accelerator]:
        if each.name == _MIXED:
            options.rewrite_options.auto_mixed_precision = options.rewrite_options.ON
        elif each.name == "tensorrt":
            raise unsupported(
                f"model '{config.name}': TensorFlow has no TensorRT since its version 2.18; remove the "
                "accelerator 'tensorrt' from config.pbtxt, or convert the model for the backend 'tensorrt'"
            )
        elif each.name != "gpu_io":  # where tensors lie for a GPU; they are copied in any case
            raise invalid(
                f"model '{config.name}': there is no accelerator '{each.name}' for TensorFlow; there are "
                f"{_MIXED} and gpu_io; change config.pbtxt"
            )
