"""The file or folder of a version, and the errors about it.

folder of a version ─► [files] ─► saved_model, graph_def.
"""

from __future__ import annotations

from pathlib import Path

from core.config import ModelConfig
from core.errors import CoreError, internal
from core.model_file import not_found

SAVED_MODEL, GRAPH_DEF = "model.savedmodel", "model.graphdef"
SAVED_MODEL_FILE = "saved_model.pb"
GRAPH_DEF_PLATFORM = "tensorflow_graphdef"


def model_files(config: ModelConfig, directory: Path) -> tuple[Path, bool]:
    """Return the SavedModel's folder or the GraphDef's file of a version, and whether it is a SavedModel.

    It is `default_model_filename`, else model.savedmodel or model.graphdef. A version's folder in which
    saved_model.pb lies is a SavedModel itself, as TensorFlow Serving has them.
    Raises CoreError(UNAVAILABLE) with the files that are there instead.
    """
    name = config.default_model_filename
    is_graph = config.platform == GRAPH_DEF_PLATFORM
    names = [name] if name else [GRAPH_DEF] if is_graph else [SAVED_MODEL, GRAPH_DEF]
    for each in names:
        path = directory / each
        if (path / SAVED_MODEL_FILE).exists():
            return path, True
        if path.is_file() and path.name != SAVED_MODEL_FILE:
            return path, False
    if not is_graph and (directory / SAVED_MODEL_FILE).exists():
        return directory, True
    path = directory / names[0]
    raise not_found(path / SAVED_MODEL_FILE if path.is_dir() else path, config.name)


def unreadable(path: Path, model: str, reason: str) -> CoreError:
    """Return the error for a file or folder."""
    return internal(f"model '{model}': cannot load '{path}': {reason}")


def text_of(error: BaseException) -> str:
    """Return the text of an error of TensorFlow in one line."""
    text = str(getattr(error, "message", error))
    return " ".join(text.split())[:1000] or type(error).__name__
