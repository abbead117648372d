"""The labels of an output: a text file in the model's directory, one class name on each line."""

from __future__ import annotations

from pathlib import Path

from core.config.messages import ModelOutput
from core.errors import internal, unsupported


def read_labels(output: ModelOutput, model: str, model_directory: Path) -> tuple[str, ...]:
    """Return the class names in the label file of an output: line n names class n, \\n or \\r\\n ends a line.

    Raises CoreError(UNSUPPORTED) if the path leaves the model's directory, also through a link.
    Raises CoreError(INTERNAL) if the file cannot be read as UTF-8.
    """
    path = model_directory / output.label_filename
    if not path.resolve().is_relative_to(model_directory.resolve()):
        raise unsupported(
            f"label file path '{path}' for output '{output.name}' in model '{model}' is outside "
            "model directory"
        )
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        missing = isinstance(error, FileNotFoundError)
        raise internal(
            f"failed to open text file for read {path}: "
            f"{'No such file or directory' if missing else error}; it is the label file for output "
            f"'{output.name}' in model '{model}'"
        ) from error
    return tuple(text.removesuffix("\n").split("\n")) if text else ()
