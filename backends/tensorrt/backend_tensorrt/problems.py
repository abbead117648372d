"""Errors with advice for reports of TensorRT and CUDA.

The patterns fit TensorRT 8.6 to 11 and CUDA. An unknown report becomes part of the error unchanged.
"""

from __future__ import annotations

import re
from pathlib import Path

from backend_tensorrt.library import PIP
from core.errors import CoreError, Fatal, internal, unavailable

_LFS_POINTER = b"version https://git-lfs"

_LIBRARY_VERSION = re.compile(r"expecting library version (\S+) got\s+(\S+?)[,;]", re.IGNORECASE)
_SERIAL_VERSION = re.compile(
    r"Current Version: (\d+), Serialized Engine Version: (\d+)", re.IGNORECASE
)
_COMPUTE = re.compile(r"expecting compute (\S+) got compute (\S+?)[,;]", re.IGNORECASE)
_PLUGIN = re.compile(
    r"(?:Cannot find plugin|getPluginCreator could not find plugin)[: ]+(\S+)", re.IGNORECASE
)
_HOST_CODE = re.compile(r"engineHostCodeAllowed|host code", re.IGNORECASE)
_NOT_COMPATIBLE = re.compile(
    r"lean runtime|version[- ]compatible|kVERSION_COMPATIBLE", re.IGNORECASE
)
_CORRUPT = re.compile(
    r"magic tag|magicTag|corrupt|checksum|truncat|unexpected end|size mismatch|header",
    re.IGNORECASE,
)
_MEMORY = re.compile(r"out of memory|cudaErrorMemoryAllocation|OutOfMemory", re.IGNORECASE)

# Errors of CUDA after which every call on the device fails until the process ends, by the documentation of
# cudaError_t.
_STICKY = (
    "IllegalAddress",
    "illegal memory access",
    "LaunchTimeout",
    "launch timed out",
    "LaunchFailure",
    "unspecified launch failure",
    "HardwareStackError",
    "hardware stack error",
    "IllegalInstruction",
    "illegal instruction",
    "MisalignedAddress",
    "misaligned address",
    "InvalidAddressSpace",
    "InvalidPc",
    "invalid program counter",
    "ECCUncorrectable",
    "uncorrectable ECC error",
    "cudaErrorAssert",
    "device-side assert",
    "ExternalDevice",
    "DevicesUnavailable",
    "ContextIsDestroyed",
    "context is destroyed",
)


def not_loaded(
    path: Path, model: str, report: str, *, version: str, runtime: str, gpu: str
) -> CoreError:
    """Return the error for a file of which TensorRT cannot make an engine.

    report    errors that TensorRT logged
    version   of TensorRT
    runtime   "full", "lean" or "dispatch"
    gpu       compute capability of the GPU: "9.0"
    """
    advice = _about_file(path) or _about_report(report, version, runtime, gpu)
    said = f" (TensorRT says: {report})" if report else ""
    return internal(f"model '{model}': cannot load '{path}': {advice}{said}")


def _about_file(path: Path) -> str:
    """Return advice from the content of the file, "" if it may be an engine."""
    size = path.stat().st_size
    with path.open("rb") as file:
        head = file.read(64)
    if size == 0:
        return "it is empty; build or copy the engine again"
    if head.startswith(_LFS_POINTER):
        return "the file is only a pointer of Git LFS; fetch the engine itself with: git lfs pull"
    if head.startswith(b"PK\x03\x04"):
        return "it is a zip archive (a PyTorch model?) and no TensorRT engine"
    if b"pytorch" in head or (head[:1] == b"\x08" and (b"onnx" in head or b"tf2onnx" in head)):
        return (
            "it is an ONNX model and no TensorRT engine; build one of it with: trtexec --onnx=… "
            "--saveEngine=model.plan, or name it model.onnx for backend-onnx"
        )
    return ""


def _about_report(report: str, version: str, runtime: str, gpu: str) -> str:
    if found := _COMPUTE.search(report):
        return (
            f"it was built for a GPU with compute capability {found[2]}, this one has {found[1]}; build it "
            "on such a GPU, or for many: BuilderFlag hardware compatibility (AMPERE_PLUS), or one file for "
            "each with cc_model_filenames"
        )
    if found := _LIBRARY_VERSION.search(report):
        return (
            f"it was built with TensorRT {found[2]}, here is {found[1]}; build it again with "
            f"{found[1]}, install TensorRT {found[2]}, or build it version-compatible and set "
            "--backend-config=tensorrt,version-compatible=true"
        )
    if found := _SERIAL_VERSION.search(report):
        return (
            f"it was built with another version of TensorRT (its format is {found[2]}, TensorRT {version} "
            f"reads {found[1]}); build it again with TensorRT {version}, install the version that built "
            "it, or build it version-compatible and set --backend-config=tensorrt,version-compatible=true"
        )
    if _HOST_CODE.search(report):
        return (
            "it is version-compatible and brings code that runs on this machine; if you trust it, set "
            "--backend-config=tensorrt,version-compatible=true"
        )
    if found := _PLUGIN.search(report):
        return (
            f"it uses the plugin {found[1].strip(',.')}, which is not loaded; give its library with "
            "--backend-config=tensorrt,plugins=/path/of/it.so"
        )
    if _MEMORY.search(report):
        return "the GPU has not enough free memory for it; unload other models, or start fewer instances"
    if runtime != "full" and (_NOT_COMPATIBLE.search(report) or "version" in report.lower()):
        return (
            f"TensorRT's {runtime} runtime {version} runs only engines that were built version-compatible; "
            f"build it so, or install all of TensorRT: {PIP}"
        )
    if _CORRUPT.search(report):
        return (
            "it is no complete TensorRT engine, or not one for this version or platform; build or copy it "
            "again"
        )
    return f"TensorRT {version} refuses it on a GPU with compute capability {gpu}"


def no_gpu(model: str, reason: str) -> CoreError:
    """Return the error for a machine on which no GPU can run an engine."""
    why = f" ({reason})" if reason else ""
    return unavailable(
        f"model '{model}': TensorRT engines run on NVIDIA GPUs only, and none can be used here{why}; check "
        "with nvidia-smi that the driver is there, and in a container that it was started with --gpus"
    )


def no_runtime(model: str, report: str) -> CoreError:
    """Return the error for a TensorRT runtime that cannot start."""
    if "CUDA initialization failure" in report or "driver version" in report:
        return no_gpu(model, report)
    return unavailable(
        f"model '{model}': TensorRT cannot be started: {report or 'no reason given'}"
    )


def failed(model: str, instance: str, device: object, report: str) -> CoreError:
    """Return the error for a failed execution; Fatal if no later execution can succeed.

    report   errors that TensorRT logged, or the text of CUDA's error
    """
    text = f"model '{model}': TensorRT: {report or 'the execution failed without a reason'}"
    if is_sticky(report):
        return Fatal(
            f"{text}; the GPU serves this process no more: instance '{instance}' on {device} leaves "
            "service, restart the server"
        )
    if _MEMORY.search(report):
        return unavailable(
            f"{text}; the GPU has not enough free memory for this batch: unload other models, start fewer "
            "instances, or set a smaller max_batch_size"
        )
    return internal(text)


def is_sticky(report: str) -> bool:
    """Return whether a report has an error after which every call of this process fails."""
    lower = report.lower()
    return any(each.lower() in lower for each in _STICKY)
