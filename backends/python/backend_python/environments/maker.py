"""Make the interpreter of the environment that a model asks for."""

from __future__ import annotations

import hashlib
import os
import shutil
import sys
import threading
from functools import partial
from pathlib import Path

from backend_python.environments import Unusable, archive, requirements
from backend_python.environments.cache import Cache
from backend_python.environments.choice import PATH, REQUIREMENTS, Choice
from backend_python.environments.interpreter import Interpreter
from backend_python.environments.settings import EnvironmentSettings

_EXPECTED = (
    "expected an archive of conda-pack (.tar.gz, .zip), the folder of an environment, or a Python "
    "interpreter"
)


class Maker:
    """Makes the interpreter of a choice. Thread-safe.

    cache        contains unpacked archives and installed requirements
    timeout_s    limit for an interpreter to report its version
    """

    def __init__(self, cache: Cache, settings: EnvironmentSettings, timeout_s: float):
        self._cache = cache
        self._settings = settings
        self._timeout_s = timeout_s

    def interpreter(self, choice: Choice) -> Interpreter:
        """Return the interpreter of a choice. May take minutes. Raises Unusable if it cannot be made."""
        if choice.requirements is None:
            return self._of_path(choice.path)
        base = self._base(choice.path)
        found = base.find(self._timeout_s)
        if found.too_old:
            raise Unusable(f"cannot be installed for Python {found.version}: {found.problem}")
        file = choice.requirements
        folder = self._cache.entry(
            f"requirements-{requirements.key(file, found)}",
            f"{file} with Python {found.version}",
            lambda folder: requirements.install(file, base, folder, choice.model),
        )
        return Interpreter(str(folder / "bin" / "python"))

    def _base(self, path: str) -> Interpreter:
        """Return the interpreter to install requirements for. Raises Unusable if `path` names none."""
        if not path:
            return Interpreter(sys.executable)
        found = _place(path)
        if found.is_dir() or _is_archive(found):
            raise Unusable(
                f"cannot be added to the environment of {PATH} '{path}'; with {REQUIREMENTS} it must "
                "name a Python interpreter, or nothing"
            )
        return Interpreter(str(found))

    def _of_path(self, path: str) -> Interpreter:
        found = _place(path)
        if found.is_dir():
            return Interpreter.of_folder(found)
        if _is_archive(found):
            key, unpack = f"archive-{_digest(found)}", partial(self._unpack, found)
            return Interpreter.of_folder(self._cache.entry(key, str(found), unpack))
        if not os.access(found, os.X_OK):
            raise Unusable(f"is no archive of a kind that is known, and no program; {_EXPECTED}")
        return Interpreter(str(found))

    def _unpack(self, file: Path, folder: Path) -> None:
        archive.unpack(file, folder, self._settings.most)
        interpreter = Interpreter.of_folder(folder)  # raises if there is none
        unpacked = folder / "bin" / "conda-unpack"
        if unpacked.is_file():  # replaces the old path of the environment in its files
            Interpreter(interpreter.python, "", interpreter.libraries).run(str(unpacked))


def _place(path: str) -> Path:
    """Return the file or folder that EXECUTION_ENV_PATH names: an existing path, or a program in PATH."""
    if os.path.exists(path):
        return Path(os.path.abspath(path))
    if os.sep not in path and (program := shutil.which(path)) is not None:
        return Path(program)
    raise Unusable(f"does not exist; {_EXPECTED}")


def _is_archive(file: Path) -> bool:
    try:
        return archive.is_archive(file)
    except OSError as error:
        raise Unusable(f"cannot be read: {error}") from None


_digests: dict[tuple[str, int, int, int], str] = {}
_digesting = threading.Lock()


def _digest(file: Path) -> str:
    """Return a digest of a file's content, cached until the file's inode, time or size changes."""
    about = file.stat()
    key = (str(file.resolve()), about.st_ino, about.st_mtime_ns, about.st_size)
    with _digesting:
        if key not in _digests:
            digest = hashlib.sha256()
            with file.open("rb") as content:
                while block := content.read(1 << 20):
                    digest.update(block)
            _digests[key] = digest.hexdigest()[:32]
        return _digests[key]
