"""Read YAML and JSON files of a source. Tags that would make Python objects are errors."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import yaml

from core.errors import invalid

_MOST_BYTES = 16 << 20


def read_yaml(path: Path) -> dict[str, Any]:
    """Return the mapping in a YAML file.

    Raises CoreError(INVALID) for other content and for a file above 16 MiB, and OSError.
    """
    return _mapping(path, "YAML")


def read_json(path: Path) -> dict[str, Any]:
    """Return the object in a JSON file.

    Raises CoreError(INVALID) for other content and for a file above 16 MiB, and OSError.
    """
    return _mapping(path, "JSON")


def _mapping(path: Path, form: str) -> dict[str, Any]:
    if path.stat().st_size > _MOST_BYTES:
        raise invalid(f"'{path}' has more than {_MOST_BYTES} bytes: no description of a model")
    try:
        text = path.read_text("utf-8")
        found = json.loads(text) if form == "JSON" else yaml.safe_load(text)
    except (ValueError, yaml.YAMLError, RecursionError) as error:
        raise invalid(f"'{path}' is no {form}: {error}") from error
    if not isinstance(found, dict):
        raise invalid(f"'{path}': expected a mapping, found {type(found).__name__}")
    return found


def requirements_in(path: Path) -> list[str]:
    """Return the lines of a requirements file that name packages; [] without the file."""
    if not path.is_file():
        return []
    lines = (line.partition(" #")[0].strip() for line in path.read_text("utf-8").splitlines())
    return [line for line in lines if line and not line.startswith(("#", "-"))]
