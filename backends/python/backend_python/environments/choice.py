"""Read from a model's configuration which environment it runs in."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from backend_python.environments.settings import EnvironmentSettings
from core.config import ModelConfig
from core.errors import CoreError, invalid

PATH = "EXECUTION_ENV_PATH"
REQUIREMENTS = "REQUIREMENTS"
DIRECTORY = "$$TRITON_MODEL_DIRECTORY"
FILE = "requirements.txt"


@dataclass(frozen=True)
class Choice:
    """The environment that a model asks for; at least one of the two is set.

    path           value of EXECUTION_ENV_PATH, "" for none
    requirements   requirements file to install, None for none
    """

    model: str
    path: str
    requirements: Path | None

    def error(self, problem: object) -> CoreError:
        """Return a CoreError(INVALID) that puts the model and the parameter before `problem`."""
        what = (
            f"requirements '{self.requirements}'" if self.requirements else f"{PATH} '{self.path}'"
        )
        return invalid(f"model '{self.model}': {what} {problem}")


def chosen(
    config: ModelConfig, version: Path, settings: EnvironmentSettings, beside: Path | None
) -> Choice | None:
    """Return the environment that a model asks for, None if it runs with the server's packages.

    version   the version's directory
    beside    folder of the backend that runs the model, None if it has none; it may contain an archive
    Raises CoreError(INVALID) if the file that REQUIREMENTS names does not exist.
    """
    path = _parameter(config, PATH) or ""
    if path.startswith(DIRECTORY):
        path = f"{version.parent}{path[len(DIRECTORY) :]}"
    if not path and beside is not None:
        # As in Triton: the archive is named after the file that runs the model.
        packed = beside / f"pb_exec_env_{config.runtime or 'model.py'}.tar.gz"
        path = str(packed) if packed.is_file() else ""
    file = _requirements(config, version, settings.installs and not path)
    return Choice(config.name, path, file) if path or file else None


def _parameter(config: ModelConfig, name: str) -> str | None:
    return config.parameters[name].string_value if name in config.parameters else None


def _requirements(config: ModelConfig, version: Path, looks: bool) -> Path | None:
    """Return the requirements file of a model, from the version's folder or else the model's.

    It is the file that the parameter REQUIREMENTS names. Without the parameter, it is requirements.txt if
    `looks` is True and the file exists. Returns None otherwise, and if the parameter is "".
    Raises CoreError(INVALID) if the file that REQUIREMENTS names does not exist.
    """
    name = _parameter(config, REQUIREMENTS)
    if name == "" or (name is None and not looks):
        return None
    wanted = (name or FILE).removeprefix(f"{DIRECTORY}/")
    for folder in (version, version.parent):
        if (folder / wanted).is_file():
            return folder / wanted
    if name is None:
        return None
    raise invalid(
        f"model '{config.name}': there is no file '{wanted}', which parameter {REQUIREMENTS} names, "
        f"in '{version}' or '{version.parent}'"
    )
