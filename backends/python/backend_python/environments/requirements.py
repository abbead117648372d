"""Install a requirements.txt into a virtual environment: with uv if installed, else with venv and pip."""

from __future__ import annotations

import hashlib
import logging
import os
import re
import shutil
import subprocess
import sys
import time
from pathlib import Path

from backend_python.environments import Unusable
from backend_python.environments.interpreter import Found, Interpreter, ending

logger = logging.getLogger("core")

_STEP = re.compile(
    r"\s*((?:Building|Downloading|Installing|Prepared|Resolved) (?!.*\.metadata\b).*)"
)
"""A line of pip or uv that a person wants to see: what is fetched, built and installed."""

_OTHERS = ("-r", "--requirement", "-c", "--constraint")


def key(file: Path, base: Found) -> str:
    """Return a cache key, equal for requirements of any model that give equal environments.

    It covers the texts, the files that they name (times and sizes), and the interpreter.
    """
    digest = hashlib.sha256(f"{base.version}\n{base.base}\n".encode())
    _add(digest, file, set())
    return digest.hexdigest()[:32]


def install(file: Path, base: Interpreter, folder: Path, model: str) -> None:
    """Make a virtual environment in `folder`, which must not exist. May take minutes.

    Relative paths in the file are relative to its folder. Raises Unusable with the installer's last lines.
    """
    beside = os.path.dirname(sys.executable)  # contains uv if it is installed with the server
    uv = shutil.which("uv", path=f"{beside}{os.pathsep}{os.environ.get('PATH', os.defpath)}")
    python = str(folder / "bin" / "python")
    logger.info("model '%s': installing '%s' with %s", model, file, uv or "pip")
    start = time.monotonic()
    if uv:
        commands = [
            [uv, "venv", "--quiet", "--python", base.python, str(folder)],
            [uv, "pip", "install", "--python", python, "-r", str(file)],
        ]
    else:
        commands = [
            [base.python, "-m", "venv", str(folder)],
            [python, "-m", "pip", "--disable-pip-version-check", "install", "-r", str(file)],
        ]
    for command in commands:
        _run(command, base, file, model)
    logger.info("model '%s': installed '%s' in %.1f s", model, file, time.monotonic() - start)


def _run(command: list[str], base: Interpreter, file: Path, model: str) -> None:
    """Run a program and log its steps. Raises Unusable with its last lines if it fails."""
    lines = []
    try:
        with subprocess.Popen(
            command,
            cwd=file.parent,
            env=base.start().variables,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
            errors="replace",
        ) as process:
            assert process.stdout is not None
            for line in process.stdout:
                lines.append(line)
                if step := _STEP.match(line):
                    logger.info("model '%s': %s", model, step[1].rstrip())
    except OSError as error:
        raise Unusable(f"'{command[0]}' cannot be started: {error}") from None
    if process.returncode:
        ended = subprocess.CompletedProcess(command, process.returncode, "".join(lines), "")
        raise Unusable(f"'{' '.join(command)}' failed: {ending(ended)}")


def _add(digest: hashlib._Hash, file: Path, seen: set[Path]) -> None:
    """Add a requirements file, and those that it includes, to the digest. Raises Unusable if unreadable."""
    if file in seen:
        return
    seen.add(file)
    try:
        text = file.read_text(errors="surrogateescape")
    except OSError as error:
        raise Unusable(f"cannot be read: {error}") from None
    digest.update(f"{text}\0".encode("utf-8", "surrogateescape"))
    for line in text.splitlines():
        words = line.split("#")[0].replace("=", " ", 1 if line.startswith("--") else 0).split()
        for word in words:
            named = file.parent / word.removeprefix("file://")
            if words[0] in _OTHERS and word != words[0] and named.is_file():
                _add(digest, named, seen)
            elif os.sep in word or word.startswith("."):
                _add_place(digest, named)


def _add_place(digest: hashlib._Hash, place: Path) -> None:
    """Add times and sizes of a path and of all files below it to the digest; nothing if it does not exist."""
    try:
        for each in sorted([place, *place.rglob("*")]):
            about = each.stat()
            digest.update(f"{each.resolve()}\n{about.st_mtime_ns}\n{about.st_size}\0".encode())
    except OSError:
        return  # it is no path, or the installer reports its error
