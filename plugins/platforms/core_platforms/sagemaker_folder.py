"""Find the model in a folder that SageMaker has unpacked."""

from __future__ import annotations

import re
from pathlib import Path

from core import config as configuration
from core.config import ModelConfig
from core.errors import CoreError, invalid

CONFIG = "config.pbtxt"
ROOT = "/opt/ml/models"

_SHOWN = 200  # characters of a refused url that the error shows
_BELOW = re.compile(r"/[\w.-]+/model(?:/[\w.-]+)?", re.ASCII)


def checked(url: str, root: str = ROOT) -> Path:
    """Return the folder that a SageMaker url names, with "." and ".." resolved. It need not exist.

    root   folder in which SageMaker unpacks models
    Raises CoreError(INVALID) unless the url is <root>/<hash>/model or <root>/<hash>/model/<folder>.
    """
    path = _normal(url)
    if not path.startswith(root) or _BELOW.fullmatch(path[len(root) :]) is None:
        raise invalid(
            f"invalid url '{url[:_SHOWN]}': expected a path of the form {root}/<hash>/model[/<folder>]"
        )
    return Path(path)


def _normal(url: str) -> str:
    """Return a path with ".", ".." and double slashes resolved as text; "" if it is relative."""
    parts: list[str] = []
    for part in url.split("/"):
        if part == "..":
            del parts[-1:]
        elif part not in ("", "."):
            parts.append(part)
    return f"/{'/'.join(parts)}" if url.startswith("/") else ""


def model_in(path: Path) -> Path:
    """Return the folder of the model to serve: `path`, or a folder in it.

    It is `path` if that has a config.pbtxt or a folder of a version. Otherwise it is the only folder in
    `path`, or among several that of the ensemble (`_ensemble_of`).
    Blocks. Raises CoreError(INVALID) if `path` cannot be read, has no folder, or has several and not
    exactly one such ensemble.
    """
    try:
        folders = sorted(each.name for each in path.iterdir() if each.is_dir())
    except OSError as error:
        raise invalid(f"'{path}' cannot be read: {error.strerror}") from None
    if (path / CONFIG).is_file() or any(name.isdecimal() for name in folders):
        return path
    if not folders:
        raise invalid(f"'{path}' holds no model: no {CONFIG}, no folder of a version, no other")
    if len(folders) == 1:
        return path / folders[0]
    return path / _ensemble_of(path, folders)


def _ensemble_of(path: Path, folders: list[str]) -> str:
    """Return the name of the only ensemble in `folders` that is not a step of another ensemble there.

    Raises CoreError(INVALID) if there is no such ensemble, or more than one.
    """
    steps = {name: _steps(path / name / CONFIG) for name in folders}
    parts = {step for each in steps.values() for step in each or ()}
    found = [name for name, each in steps.items() if each is not None and name not in parts]
    if len(found) != 1:
        raise invalid(
            f"'{path}' holds the models {', '.join(folders)}: one of them must be an ensemble, which is the "
            f"one that is served; found: {', '.join(found) or 'none'}"
        )
    return found[0]


def _steps(file: Path) -> list[str] | None:
    """Return the names of the models of an ensemble's steps.

    Returns None if the configuration is not of an ensemble, or cannot be read.
    """
    try:
        config: ModelConfig = configuration.parse_text(file.read_text("utf-8"), str(file))
    except (OSError, ValueError, CoreError):  # the load of the model reports the error
        return None
    kinds = (config.platform, config.backend)
    if "ensemble" not in kinds and not config.HasField("ensemble_scheduling"):
        return None
    return [step.model_name for step in config.ensemble_scheduling.step]
