"""Import TensorRT and CuPy for the first model. Errors say how to install a missing one.

A library that is missing or broken only fails the models of this backend. The errors name the model.
"""

from __future__ import annotations

import importlib
from dataclasses import dataclass
from typing import Any

from backend_tensorrt.cuda import Cuda
from core.errors import CoreError, invalid, unavailable

# Values of --backend-config=tensorrt,runtime=… in the order in which they are tried without it, and their
# modules. Wheels with "-bindings" in their names have it in the module's name, too.
RUNTIMES = {
    "full": ("tensorrt", "tensorrt_bindings"),
    "lean": ("tensorrt_lean", "tensorrt_lean_bindings"),
    "dispatch": ("tensorrt_dispatch", "tensorrt_dispatch_bindings"),
}
_OLDEST = 10
# The folder that `make wheels` makes: no index has the distributions of this project.
_INSTALL = "pip install --find-links wheels 'backend-tensorrt[{}]'"
PIP = f"{_INSTALL.format('cu13')} (or [cu12], by the driver)"
_LEAN = _INSTALL.format("lean")


@dataclass(frozen=True)
class Library:
    """The libraries that the models of this process use.

    trt       the module: tensorrt, tensorrt_lean or tensorrt_dispatch
    runtime   its key in RUNTIMES
    cuda      CUDA through CuPy
    """

    trt: Any
    runtime: str
    cuda: Cuda

    @property
    def version(self) -> str:
        """Version of TensorRT: "11.4.0.106"."""
        return str(self.trt.__version__)


def library(wanted: str, model: str) -> Library:
    """Import the libraries. Thread-safe.

    wanted   a key of RUNTIMES, "" for the first one that is installed
    model    name of the model for errors
    Raises CoreError(UNAVAILABLE) for a library that is missing, broken or too old, with the command that
    installs it, and CoreError(INVALID) for an unknown runtime.
    """
    runtime, trt = tensorrt(wanted, model)
    return Library(trt, runtime, Cuda(cupy(model)))


def tensorrt(wanted: str, model: str) -> tuple[str, Any]:
    """Import TensorRT. Return the name of the runtime and the module.

    Raises CoreError(INVALID) for an unknown runtime, and CoreError(UNAVAILABLE) if it is missing, broken or
    too old.
    """
    if wanted and wanted not in RUNTIMES:
        raise invalid(
            f"--backend-config=tensorrt,runtime={wanted}: it must be one of {', '.join(RUNTIMES)}"
        )
    reasons = []
    for runtime in [wanted] if wanted else RUNTIMES:
        for name in RUNTIMES[runtime]:
            try:
                found = importlib.import_module(name)
            except Exception as error:  # a broken library may raise any exception
                if not _is_missing(error, name):
                    reasons.append(f"{name} cannot be imported: {_line(error)}")
                continue
            _check_version(found, name, model)
            return runtime, found
    raise _no_tensorrt(model, wanted, reasons)


def cupy(model: str) -> Any:
    """Import and return CuPy. Raises CoreError(UNAVAILABLE) if it is missing or broken."""
    try:
        return importlib.import_module("cupy")
    except Exception as error:
        missing = _is_missing(error, "cupy")
        found = "is not installed" if missing else f"cannot be imported: {_line(error)}"
        raise unavailable(
            f"model '{model}': CuPy, which holds the memory of the GPU for TensorRT, {found}; "
            f"install it with: {PIP}"
        ) from error


def _is_missing(error: Exception, name: str) -> bool:
    return isinstance(error, ModuleNotFoundError) and error.name == name


def _line(error: Exception) -> str:
    """Return the text of an error in one line."""
    return f"{type(error).__name__}: {' '.join(str(error).split())}"


def _check_version(module: Any, name: str, model: str) -> None:
    version = str(getattr(module, "__version__", "0"))
    if int(version.split(".")[0]) < _OLDEST:
        raise unavailable(
            f"model '{model}': {name} {version} is too old, this backend needs {_OLDEST} or newer; "
            f"install it with: {PIP}"
        )


def _no_tensorrt(model: str, wanted: str, reasons: list[str]) -> CoreError:
    command = _LEAN if wanted == "lean" else PIP
    if wanted == "dispatch":
        command = "pip install tensorrt-dispatch-cu13-bindings tensorrt-dispatch-cu13-libs"
    what = "TensorRT" + (f" (its {wanted} runtime)" if wanted else "")
    if not reasons:
        return unavailable(
            f"model '{model}': {what} is not installed; install it with: {command}"
            + ("" if wanted else f"; for version-compatible engines alone: {_LEAN}")
        )
    text = "; ".join(reasons)
    if "libnvinfer" in text:
        text += (
            "; the bindings are there without their library: install the package whose name ends with "
            "-libs, in the same version"
        )
    return unavailable(f"model '{model}': {what}: {text}; or install it anew with: {command}")
