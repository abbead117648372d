"""Override: a load request's replacement for the repository's files.

`config` replaces config.pbtxt. `file:<path>` entries make a separate model directory, which is used instead
of the repository's. Clients choose the paths, so no path may leave the new directory. Clients choose the
sizes, so all such directories together have a limit.
"""

from __future__ import annotations

import posixpath
import threading
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any

from core.errors import invalid, unavailable
from core.repository.names import LONGEST_NAME
from core.repository.private import PrivateDirectory

_FILE = "file:"

_MOST_FILES = 1024
_DEEPEST = 32  # limit of folders above a file
_MOST_BYTES = 4 << 30

_lock = threading.Lock()
_taken = 0  # bytes in override directories of this process; under _lock


@dataclass(frozen=True)
class Override:
    """The validated parameters of a load request.

    config       JSON of a ModelConfig
    files        normalised path below the model's directory → content; empty to use the repository's files
    most_bytes   limit of bytes for the existing files of all overrides of the process
    """

    config: str
    files: Mapping[str, bytes]
    most_bytes: int = _MOST_BYTES

    @classmethod
    def of(cls, parameters: Mapping[str, Any], most_bytes: int = _MOST_BYTES) -> Override | None:
        """Return the override that the parameters of a load request describe; None for a plain load.

        Raises CoreError(INVALID) for an unknown parameter, a wrong type, a path that leaves the model or
        that no model can have, for files without `config`, and for too many files or bytes.
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
                path = _path_of(name)
                if path in files:
                    raise invalid(f"Invalid file parameter '{name}', '{path}' is given twice.")
                files[path] = bytes(value)
            else:
                raise invalid(f"unrecognized load parameter '{name}'.")
        if config is None:
            if files:
                raise invalid("Load parameter 'config' must be specified for model file override.")
            return None
        _refuse_files_as_directories(files)
        if len(files) > _MOST_FILES:
            raise invalid(f"a load request has {len(files)} files, it may have {_MOST_FILES}")
        found = cls(config, files, most_bytes)
        if found.byte_size > most_bytes:
            raise invalid(
                f"the files of a load request have {found.byte_size} bytes, they may have {most_bytes}: "
                "--model-override-max-byte-size"
            )
        return found

    @property
    def byte_size(self) -> int:
        """Return the total size of all files."""
        return sum(map(len, self.files.values()))

    def write(self) -> PrivateDirectory:
        """Write the files to a new directory that only this user can enter. Worker thread.

        Raises CoreError(UNAVAILABLE) while other models use up the byte limit, and OSError.
        """
        directory = _Written(self.byte_size, self.most_bytes)
        try:
            for path, content in self.files.items():
                file = directory.path / path
                file.parent.mkdir(parents=True, exist_ok=True)
                file.write_bytes(content)
        except BaseException:
            directory.remove()
            raise
        return directory


class _Written(PrivateDirectory):
    """The directory of one override. Its bytes count for the limit until `remove`."""

    def __init__(self, byte_size: int, most_bytes: int):
        global _taken
        with _lock:
            if _taken + byte_size > most_bytes:
                raise unavailable(
                    f"files of load requests take {_taken} bytes now, and {byte_size} more would be over the "
                    f"{most_bytes} of --model-override-max-byte-size; unload such a model first"
                )
            _taken += byte_size
        self._byte_size = byte_size
        try:
            super().__init__()
        except BaseException:
            self._count_out()
            raise

    def remove(self) -> None:
        super().remove()
        self._count_out()

    def _count_out(self) -> None:
        global _taken
        with _lock:
            _taken -= self._byte_size
            self._byte_size = 0


def _path_of(parameter: str) -> str:
    """Return the normalised path of a `file:<path>` parameter. Raises CoreError(INVALID) for a bad one.

    The text alone is checked, before any file exists. The directory is new and private, so no link can
    lead out of it later.
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
    if reason := _oddity(path, normalised):
        raise invalid(f"Invalid file parameter {parameter!a}: {reason}.")
    return normalised


def _oddity(path: str, normalised: str) -> str:
    """Return why no file of a model can have such a path; "" for a valid path."""
    if any(ord(each) < 32 or ord(each) == 127 or "\ud800" <= each <= "\udfff" for each in path):
        return "its path has a character that cannot be shown"
    if "\\" in path:
        return "folders are divided by /, and names have no backslash"
    names = normalised.split("/")
    if len(names) > _DEEPEST:
        return f"it is {len(names)} folders deep, there may be {_DEEPEST}"
    if any(len(name.encode()) > LONGEST_NAME for name in names):
        return f"a name has more than {LONGEST_NAME} bytes"
    return ""


def _refuse_files_as_directories(files: Mapping[str, bytes]) -> None:
    for path in files:
        for parent in map(str, PurePosixPath(path).parents):
            if parent in files:
                raise invalid(
                    f"Invalid file parameter '{_FILE}{path}', directory has been created as a file "
                    f"by '{_FILE}{parent}'"
                )
