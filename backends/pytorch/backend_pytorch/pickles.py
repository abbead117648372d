"""Refuse an exported program that torch could read only by running code of a pickle.

open_exported ─► [refuse_pickles].  torch.export.load reads weights as plain bytes, and example tensors with
weights_only=True, but falls back to a full unpickling for custom objects.
"""

from __future__ import annotations

import io
import json
import zipfile
from pathlib import Path
from typing import Any

import torch

from core.errors import CoreError, unsupported


def refuse_pickles(path: Path, model: str) -> None:
    """Check all parts of a file. Raises CoreError(UNSUPPORTED) for one with more than plain tensors."""
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            if name.endswith(".json") and "_config" in name:
                _check_payloads(json.loads(archive.read(name)), name, path, model)
            elif name.endswith((".pt", ".pth")):
                _check_tensors(archive.read(name), name, path, model)


def _check_payloads(config: Any, name: str, path: Path, model: str) -> None:
    """Raise CoreError(UNSUPPORTED) if an entry of weights or constants is marked as pickled."""
    entries = config.get("config", {}) if isinstance(config, dict) else {}
    for key, entry in entries.items():
        if isinstance(entry, dict) and entry.get("use_pickle"):
            raise _refusal(f"'{key}' of '{name}'", path, model)


def _check_tensors(content: bytes, name: str, path: Path, model: str) -> None:
    if not content:
        return
    try:
        torch.load(io.BytesIO(content), weights_only=True, map_location="meta")
    except Exception as error:
        raise _refusal(f"'{name}'", path, model) from error


def _refusal(part: str, path: Path, model: str) -> CoreError:
    return unsupported(
        f"model '{model}': {part} in '{path}' holds more than plain tensors, and reading it would run "
        "code of a pickle; export the model without custom objects"
    )
