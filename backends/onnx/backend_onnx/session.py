"""Make a session from a model file. Errors say what a person can do about them.

Model ─► [session] ─► instance.
"""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import onnxruntime as ort

from backend_onnx.providers import Provider, check_active
from core.config import ModelConfig
from core.errors import internal
from core.model_file import check_readable, not_found

FILENAME = "model.onnx"

_NO_MODEL = ("No graph was found", "does not have a graph")
_ORT_TEXT = re.compile(r"^\[ONNXRuntimeError\] : (\d+) : \w+ : (.*)$", re.DOTALL)
_OPSET = re.compile(
    r"Opset (\d+) is under development.*domain (\S+) is till opset (\d+)", re.DOTALL
)
_IR_VERSION = re.compile(r"IR version: (\d+), max supported IR version: (\d+)")
_MISSING_OPERATOR = re.compile(r"No Op registered for|not a registered function/op")


def model_file(config: ModelConfig, directory: Path) -> Path:
    """Return the file of a version: `default_model_filename` in its folder, or model.onnx in a folder of
    that name.

    Raises CoreError(UNAVAILABLE) with the files that are there instead.
    """
    path = directory / (config.default_model_filename or FILENAME)
    if path.is_dir():
        path = path / FILENAME
    if path.is_file():
        return path
    raise not_found(path, config.name)


def open_session(path: Path, options: Any, providers: list[Provider], model: str) -> Any:
    """Return an onnxruntime.InferenceSession. Takes long for large files: it optimises the graph.

    Raises CoreError with the file, the reason and what to do.
    """
    check_readable(path, model)
    try:
        session = ort.InferenceSession(
            str(path),
            options,
            providers=[name for name, _ in providers],
            provider_options=[settings for _, settings in providers],
            enable_fallback=0,  # the fallback prints, and serves from the CPU instead of the GPU
        )
    except Exception as error:
        advice = _advice(path, str(error), type(error).__name__)
        raise internal(
            f"model '{model}': cannot load '{path}': {advice} ({ort_text(error)})"
        ) from error
    check_active(session, providers, model)
    return session


def ort_text(error: BaseException) -> str:
    """Return the text of an error of ONNX Runtime as Triton writes it: "onnx runtime error 6: …"."""
    found = _ORT_TEXT.match(str(error))
    if found is None:
        return f"onnx runtime error: {str(error).strip() or type(error).__name__}"
    return f"onnx runtime error {found[1]}: {found[2].strip()}"


def _advice(path: Path, text: str, kind: str) -> str:
    """Return the cause of an error of a session, and what a person can do about it if that is known.

    text, kind   text and type name of the exception
    """
    # The patterns fit ONNX Runtime 1.31 and 1.23, the last version for Python 3.10.
    if kind == "InvalidProtobuf" or any(each in text for each in _NO_MODEL):
        return (
            f"its {path.stat().st_size} bytes are no complete ONNX model; "
            "export or copy the file again"
        )
    if found := _OPSET.search(text):
        return (
            f"it uses opset {found[1]} of {found[2]}, onnxruntime {ort.__version__} knows opsets up "
            f"to {found[3]}; install a newer onnxruntime, or export the model with opset_version="
            f"{found[3]}"
        )
    if found := _IR_VERSION.search(text):
        return (
            f"it has IR version {found[1]}, onnxruntime {ort.__version__} knows up to {found[2]}; "
            "install a newer onnxruntime, or export the model with an older onnx"
        )
    if _MISSING_OPERATOR.search(text):
        return (
            f"it uses an operator that onnxruntime {ort.__version__} does not have; install a newer "
            "one, or give the operator's library in model_operations { op_library_filename }"
        )
    if "Could not find an implementation" in text:
        return (
            f"onnxruntime {ort.__version__} has that operator, but not for these datatypes on this "
            "device; put a Cast before and after it"
        )
    if "external" in text.lower():
        return (
            "the files with its external data must lie beside it, under the names that it was "
            "exported with"
        )
    return f"onnxruntime {ort.__version__} refuses it"
