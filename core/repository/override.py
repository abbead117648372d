"""Override: what a load request brings in place of the repository's files.

`config` replaces config.pbtxt; `file:<path>` entries make a model directory of their own, which is
used instead of the repository's. Clients choose these paths, so none may leave the new directory.
"""

from __future__ import annotations

import posixpath
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from core.errors import invalid
from core.repository.private import PrivateDirectory

_FILE = "file:"


@dataclass(frozen=True)
class Override:
    """The parameters of a load request, checked.

    config   JSON of a ModelConfig
    files    normalised path below the model's directory → content; empty for the repository's files
    """

    config: str
    files: Mapping[str, bytes]

    @classmethod
    def of(cls, parameters: Mapping[str, Any]) -> Override | None:
        """The override that the parameters of a load request mean, None for a plain load.

        Raises CoreError(INVALID) for an unknown parameter, a wrong type, a path that leaves the model.
        """
        config: str | None = None
        files: dict[str, bytes] = {}
        for name, value in parameters.items():
            if name == "config":
                if not isinstance(value, str):
                    raise invalid("Config parameter 'config' must have string type for its value.")
                config = value
            elif name.startswith(_FILE):
                if not isinstance(value, bytes | bytearray | memoryview):
                    raise invalid(f"File parameter '{name}' must have bytes type for its value.")
                files[_path_of(name)] = bytes(value)
            else:
                raise invalid(f"unrecognized load parameter '{name}'.")
        if config is None:
            if files:
                raise invalid("Load parameter 'config' must be specified for model file override.")
            return None
        _refuse_files_as_directories(files)
        return cls(config, files)

    def write(self) -> PrivateDirectory:
        """Write the files to a new directory that only this user may enter. Worker thread."""
        directory = PrivateDirectory()
        try:
            for path, content in self.files.items():
                file = directory.path / path
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(content)
        except BaseException:
            directory.remove()
            raise
        return directory


def _path_of(parameter: str) -> str:
    """The normalised relative path of a `file:<path>` parameter.

    The path is judged as text, before anything exists: the directory is new and private, so no link
    can lead out of it later.
    """
    path = parameter[len(_FILE) :]
    normalised = posixpath.normpath(path) if path else ""
    inside = (
        normalised not in ("", ".", "..")
        and not normalised.startswith(("/", "../"))
        and not path.endswith("/")
        and "\0" not in path
    )
    if not inside:
        raise invalid(
            f"Invalid file parameter '{parameter}' with normalized path '{normalised}' must stay "
            "within model directory."
        )
    return normalised


def _refuse_files_as_directories(files: Mapping[str, bytes]) -> None:
    for path in files:
        parent = posixpath.dirname(path)
        while parent:
            if parent in files:
                raise invalid(
                    f"Invalid file parameter '{_FILE}{path}', directory has been created as a file "
                    f"by '{_FILE}{parent}'"
                )
            parent = posixpath.dirname(parent)
