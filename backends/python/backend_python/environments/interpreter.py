"""Start a Python interpreter, and check whether models can run in it."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import backend_python
from backend_python.environments import Unusable
from backend_python.server.template import Command

_PACKAGE = Path(backend_python.__file__).parent
_ALONE = _PACKAGE / "child" / "alone.py"
# Arguments for bash: activate, folder of programs, folder of libraries, command. The exit status of activate
# is ignored: it comes from the last package's script. PATH and VIRTUAL_ENV are set after it, because a packed
# environment may contain the paths of another machine. LD_LIBRARY_PATH is set last, so that the commands
# above run with the system's libraries.
_ACTIVATED = """
source "$0"
export PATH="$1:$PATH"
[ -z "${VIRTUAL_ENV-}" ] || export VIRTUAL_ENV="${1%/bin}"
[ -z "$2" ] || export LD_LIBRARY_PATH="$2${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}"
shift 2
exec "$@"
"""
_MOST_LINES = 20  # of a program's output in an error

OLDEST = "3.9"


@dataclass(frozen=True)
class Found:
    """The facts that an interpreter reports.

    base      its sys.base_prefix: the Python installation that it, or its environment, belongs to
    problem   reason why models cannot run in it; "" if they can
    """

    version: str
    executable: str
    base: str
    problem: str

    @property
    def too_old(self) -> bool:
        return _numbers(self.version) < _numbers(OLDEST)


@dataclass(frozen=True)
class Interpreter:
    """An interpreter and how to start it.

    activate    bash script to source before the start; "" for none
    libraries   folder to put first in LD_LIBRARY_PATH, as Triton does for conda; "" for none
    """

    python: str
    activate: str = ""
    libraries: str = ""

    @staticmethod
    def of_folder(folder: Path) -> Interpreter:
        """Return the interpreter in an environment's folder or its bin folder. Raises Unusable if none."""
        if folder.name == "bin" and (folder / "python").exists():
            folder = folder.parent
        binaries = folder / "bin"
        unusable = ""
        for name in ("python", "python3"):
            python = binaries / name
            if python.exists() and not os.access(python, os.X_OK):
                unusable = unusable or str(python)
            elif python.exists():
                activate = binaries / "activate"
                plain = (folder / "pyvenv.cfg").exists()
                return Interpreter(
                    str(python),
                    str(activate) if activate.is_file() else "",
                    "" if plain else str(folder / "lib"),
                )
        if unusable:
            raise Unusable(f"program '{unusable}' cannot be run; try: chmod +x {unusable}")
        there = ", ".join(sorted(each.name for each in folder.iterdir())[:10]) or "nothing"
        raise Unusable(
            f"has no program bin/python, but {there}; expected the folder of an environment"
        )

    def start(self, *arguments: str) -> Command:
        """Return the command that runs the interpreter with `arguments` and the environment's variables."""
        command = [self.python, *arguments]
        variables = self._variables()
        binaries = os.path.dirname(self.python)
        if self.activate and (bash := shutil.which("bash")):
            found = [self.activate, binaries, self.libraries]
            return Command([bash, "-c", _ACTIVATED, *found, *command], variables)
        variables["PATH"] = _before(binaries, variables.get("PATH", os.defpath))
        if self.libraries:
            rest = variables.get("LD_LIBRARY_PATH", "")
            variables["LD_LIBRARY_PATH"] = _before(self.libraries, rest)
        return Command(command, variables)

    def template(self) -> Command:
        """Return the command of the template process from which child processes are forked."""
        return self.start(str(_ALONE))

    def run(self, *arguments: str) -> None:
        """Run the interpreter to its end. Raises Unusable with the last lines of its output if it fails."""
        command = self.start(*arguments)
        ended = _run(command, None)
        if ended.returncode:
            raise Unusable(f"'{arguments[0]}' failed: {ending(ended)}")

    def find(self, timeout_s: float) -> Found:
        """Run the interpreter and return the facts that it reports. Raises Unusable if it reports none."""
        try:
            ended = _run(self.start(str(_ALONE), "check"), timeout_s)
        except subprocess.TimeoutExpired:
            raise Unusable(
                f"'{self.python}' does not answer within {timeout_s} seconds; "
                "--backend-config=python,stub-timeout-seconds=N allows more"
            ) from None
        try:
            facts: dict[str, Any] = json.loads(ended.stdout.splitlines()[-1])
            version = ".".join(map(str, facts["python"]))
            found = Found(version, facts["executable"], facts["base"], facts.get("error", ""))
        except (ValueError, LookupError, TypeError):
            raise Unusable(
                f"'{self.python}' does not run as Python {OLDEST} or later: {ending(ended)}"
            ) from None
        return found

    def _variables(self) -> dict[str, str]:
        """Return a copy of this process's environment variables that leads to no other interpreter.

        It has no variables that choose an interpreter or environment, such as PYTHONHOME and VIRTUAL_ENV.
        PYTHONPATH has no folders of the server's own packages.
        """
        variables = dict(os.environ)
        for name in ("PYTHONHOME", "PYTHONEXECUTABLE", "VIRTUAL_ENV", "__PYVENV_LAUNCHER__"):
            variables.pop(name, None)
        if path := variables.pop("PYTHONPATH", ""):
            kept = [each for each in path.split(os.pathsep) if each and not _is_ours(each)]
            if kept:
                variables["PYTHONPATH"] = os.pathsep.join(kept)
        return variables


def checked(interpreter: Interpreter, timeout_s: float) -> Found:
    """Return the facts of an interpreter. Raises Unusable if models cannot run in it."""
    found = interpreter.find(timeout_s)
    if found.problem:
        raise Unusable(
            f"its Python {found.version} ('{found.executable}') cannot run models: {found.problem}; "
            f"they need Python {OLDEST} or later with numpy"
        )
    return found


def ending(ended: subprocess.CompletedProcess[str]) -> str:
    """Return the exit status or signal of a program, and the last lines of its output."""
    lines = (ended.stdout + ended.stderr).strip().splitlines()[-_MOST_LINES:]
    status = ended.returncode
    how = f"signal {-status}" if status < 0 else f"exit status {status}"
    return "\n".join([how, *lines])


def _run(command: Command, timeout_s: float | None) -> subprocess.CompletedProcess[str]:
    try:
        return subprocess.run(
            command.arguments,
            env=command.variables,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout_s,
        )
    except OSError as error:
        raise Unusable(f"'{command.arguments[0]}' cannot be started: {error}") from None


def _is_ours(folder: str) -> bool:
    """Return whether the server imports its own packages from that folder."""
    here = os.path.realpath(folder)
    homes = {_PACKAGE.parent}
    for name in ("core", "numpy"):
        if (file := getattr(sys.modules.get(name), "__file__", None)) is not None:
            homes.add(Path(file).parents[1])
    return here in {os.path.realpath(home) for home in homes}


def _numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")[:2]))


def _before(folder: str, rest: str) -> str:
    return f"{folder}{os.pathsep}{rest}" if rest else folder
