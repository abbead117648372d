"""Choose the execution providers of a session for a device and a configuration.

Device, ModelConfig ─► [providers_for] ─► session.  The names and parameters of
`execution_accelerators` are those of Triton's ONNX Runtime backend.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import onnxruntime as ort

from core.backend import Device
from core.config import ModelConfig
from core.errors import CoreError, invalid, unsupported

CPU = "CPUExecutionProvider"
CUDA = "CUDAExecutionProvider"
TENSORRT = "TensorrtExecutionProvider"
OPENVINO = "OpenVINOExecutionProvider"

Provider = tuple[str, dict[str, str]]

_PACKAGES = {
    CUDA: "onnxruntime-gpu",
    TENSORRT: "onnxruntime-gpu and tensorrt",
    OPENVINO: "onnxruntime-openvino",
}
# Older parameters of a model for options of the accelerator "cuda": parameter → option and its values.
CUDA_PARAMETERS: dict[str, tuple[str, Mapping[str, str]]] = {
    "cudnn_conv_algo_search": (
        "cudnn_conv_algo_search",
        {"0": "EXHAUSTIVE", "1": "HEURISTIC", "2": "DEFAULT"},
    ),
    "gpu_mem_limit": ("gpu_mem_limit", {}),
    "arena_extend_strategy": (
        "arena_extend_strategy",
        {"0": "kNextPowerOfTwo", "1": "kSameAsRequested"},
    ),
    "do_copy_in_default_stream": ("do_copy_in_default_stream", {"true": "1", "false": "0"}),
}
_TENSORRT_NAMES = {
    "max_workspace_size_bytes": "trt_max_workspace_size",
    "int8_calibration_table_name": "trt_int8_calibration_table_name",
    "int8_use_native_calibration_table": "trt_int8_use_native_calibration_table",
}
_TENSORRT_PRECISIONS: dict[str, dict[str, str]] = {
    "FP32": {},
    "FP16": {"trt_fp16_enable": "1"},
    "BF16": {"trt_bf16_enable": "1"},
    "INT8": {"trt_int8_enable": "1"},
}


def providers_for(config: ModelConfig, device: Device) -> list[Provider]:
    """Return the execution providers of a session with their options, the preferred one first.

    Raises CoreError(UNSUPPORTED) for a provider that this onnxruntime lacks, and CoreError(INVALID) for an
    unknown accelerator or an invalid parameter.
    """
    accelerators = config.optimization.execution_accelerators
    found: list[Provider] = []
    if device.kind == "GPU":
        cuda = _from_parameters(config)
        for accelerator in accelerators.gpu_execution_accelerator:
            if accelerator.name == "tensorrt":
                options = _tensorrt_options(dict(accelerator.parameters), config.name)
                found.append((TENSORRT, {**options, "device_id": str(device.id)}))
            elif accelerator.name == "cuda":
                cuda.update(accelerator.parameters)
            else:
                raise _unknown(accelerator.name, "gpu", "tensorrt, cuda", config.name)
        found.append((CUDA, {**cuda, "device_id": str(device.id)}))
    else:
        for accelerator in accelerators.cpu_execution_accelerator:
            if accelerator.name != "openvino":
                raise _unknown(accelerator.name, "cpu", "openvino", config.name)
            found.append((OPENVINO, {"device_type": "CPU", **accelerator.parameters}))
    found.append((CPU, {}))
    available = ort.get_available_providers()
    for name, _ in found:
        if name not in available:
            raise _missing(name, device, available, config.name)
    return found


def check_active(session: Any, wanted: list[Provider], model: str) -> None:
    """Refuse a session that lacks a wanted provider. Raises CoreError(UNSUPPORTED).

    ONNX Runtime only warns if, for example, the CUDA libraries of the machine do not fit.
    """
    active = session.get_providers()
    for name, _ in wanted:
        if name not in active:
            raise unsupported(
                f"model '{model}': onnxruntime {ort.__version__} has {name}, but could not start it "
                "on this machine; check the driver and the libraries that it needs (CUDA, cuDNN, "
                "TensorRT), or use instance_group { kind: KIND_CPU }"
            )


def _from_parameters(config: ModelConfig) -> dict[str, str]:
    options = {}
    for name, (option, values) in CUDA_PARAMETERS.items():
        if name in config.parameters:
            value = config.parameters[name].string_value
            options[option] = values.get(value.lower(), value)
    return options


def _tensorrt_options(parameters: dict[str, str], model: str) -> dict[str, str]:
    options: dict[str, str] = {}
    for name, value in parameters.items():
        if name == "precision_mode":
            if value not in _TENSORRT_PRECISIONS:
                raise invalid(
                    f"model '{model}': unsupported precision mode '{value}' is requested; "
                    f"there are {', '.join(_TENSORRT_PRECISIONS)}"
                )
            options.update(_TENSORRT_PRECISIONS[value])
        elif name in _TENSORRT_NAMES:
            options[_TENSORRT_NAMES[name]] = value
        elif name.startswith("trt_"):
            options[name] = value
        else:
            raise invalid(
                f"model '{model}': unknown parameter '{name}' is provided for TensorRT Execution "
                "Accelerator"
            )
    return options


def _unknown(name: str, kind: str, known: str, model: str) -> CoreError:
    return invalid(
        f"model '{model}': unknown Execution Accelerator '{name}' is requested in "
        f"{kind}_execution_accelerator; there is {known}"
    )


def _missing(name: str, device: Device, available: list[str], model: str) -> CoreError:
    text = (
        f"model '{model}': an instance on {device} needs {name}, which onnxruntime "
        f"{ort.__version__} was built without (it has {', '.join(available)}); try: "
        f"pip uninstall onnxruntime && pip install {_PACKAGES.get(name, 'another build of it')}"
    )
    if name == CUDA:
        text += ", or use instance_group { kind: KIND_CPU }"
    return unsupported(text)
