"""Read a model from a file. Errors say what a person can do about them.

folder of a version ─► [reading] ─► openvino.Model.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import openvino as ov

from core.config import ModelConfig
from core.errors import CoreError, internal
from core.model_file import check_readable, not_found

FILENAME = "model.xml"

_FILES = (".xml", ".onnx", ".tflite", ".pdmodel", ".pb")  # formats that are files, not folders


def model_file(config: ModelConfig, directory: Path) -> Path:
    """Return the file of a version (the folder for a SavedModel): `default_model_filename`, or model.xml.

    Raises CoreError(UNAVAILABLE) with the files that are there instead.
    """
    path = directory / (config.default_model_filename or FILENAME)
    if path.is_file() or (path.is_dir() and path.suffix not in _FILES):
        return path
    raise not_found(path, config.name)


def read_model(core: Any, path: Path, model: str) -> Any:
    """Return an openvino.Model. Takes long for large files. Weights are mapped into memory.

    Raises CoreError with the file, the reason and advice.
    """
    if path.is_file():
        check_readable(path, model)
    if path.suffix == ".xml" and path.stat().st_size == 0:
        raise _unreadable(path, model, "it is empty; export or copy the file again")
    try:
        return core.read_model(str(path))
    except Exception as error:
        raise _unreadable(path, model, f"{_advice(path)} ({ov_text(error)})") from error


def ov_text(error: BaseException) -> str:
    """Return the text of an error of OpenVINO without the lines about its source code."""
    lines = [line.strip() for line in str(error).splitlines()]
    telling = [
        line for line in lines if line and not line.startswith(("Exception from", "Check '"))
    ]
    return " ".join(telling) or type(error).__name__


def version() -> str:
    """Return the version of OpenVINO without its build number: "2026.4.1"."""
    return str(ov.get_version()).split("-", 1)[0]


def _unreadable(path: Path, model: str, reason: str) -> CoreError:
    return internal(f"model '{model}': cannot load '{path}': {reason}")


def _advice(path: Path) -> str:
    weights = path.with_suffix(".bin")
    if path.suffix == ".xml" and not weights.exists():
        return (
            f"its weights '{weights.name}' are not beside it; copy both files that "
            "openvino.save_model wrote"
        )
    return f"OpenVINO {version()} cannot read it; export or copy the model again"
