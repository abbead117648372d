"""Serialize the pipeline of a Python file, in a process of its own: its code stays out of the server.

dali.py ─► [serializing] ─► definition.
"""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from functools import lru_cache
from pathlib import Path

_PATIENCE_S = 600  # the import of DALI alone takes seconds
_LOOK_S = 0.05  # between two looks at the process
_MOST_BYTES = 1 << 16  # of its errors, from the end
_PROGRAM = """
import importlib.util, os, signal, sys, threading

server = os.dup(0)  # a pipe in which the server writes nothing: it closes with the server
os.dup2(os.open(os.devnull, os.O_RDONLY), 0)

def end_with_the_server():
    os.read(server, 1)
    os.killpg(0, signal.SIGKILL)

threading.Thread(target=end_with_the_server, daemon=True).start()
spec = importlib.util.spec_from_file_location("pipeline_of_the_model", sys.argv[1])
module = importlib.util.module_from_spec(spec)
sys.modules[spec.name] = module
spec.loader.exec_module(module)
from nvidia.dali._utils.autoserialize import invoke_autoserialize
invoke_autoserialize(module, sys.argv[2])
"""


def serialized(path: Path) -> bytes:
    """Return the pipeline that a file marks with @autoserialize, serialized. Thread-safe.

    It runs the file once for as long as the file does not change. Modules beside the file can be imported.
    Raises ValueError with the last line of the error.
    """
    about = path.stat()
    return _run(path, about.st_mtime_ns, about.st_size)


@lru_cache(maxsize=64)
def _run(path: Path, changed_ns: int, size: int) -> bytes:
    with tempfile.TemporaryDirectory(prefix="core-dali-") as folder:
        target, errors = Path(folder) / "model.dali", Path(folder) / "errors"
        status = _status(path, target, errors)
        if status or not target.is_file():
            raise ValueError(_last_line(errors) or f"its process ended with status {status}")
        return target.read_bytes()


def _status(path: Path, target: Path, errors: Path) -> int:
    """Run the file, and return the exit status. What it has started ends with it, and all with the server.

    Raises ValueError if it takes too long, or if the server ends first.
    """
    with (
        errors.open("wb") as file,
        subprocess.Popen(
            [sys.executable, "-c", _PROGRAM, str(path.absolute()), str(target)],
            cwd=path.absolute().parent,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=file,
            start_new_session=True,
        ) as process,
    ):
        try:
            _wait(process.pid)
        finally:  # before the process is waited for: the number is still its own
            os.killpg(process.pid, signal.SIGKILL)
    return process.returncode


def _wait(pid: int) -> None:
    """Return when the process has ended; it stays to be waited for."""
    deadline = time.monotonic() + _PATIENCE_S
    while os.waitid(os.P_PID, pid, os.WEXITED | os.WNOHANG | os.WNOWAIT) is None:
        if time.monotonic() > deadline:
            raise ValueError(f"it runs for more than {_PATIENCE_S} s")
        if not threading.main_thread().is_alive():
            raise ValueError("the server ends before it")
        time.sleep(_LOOK_S)


def _last_line(errors: Path) -> str:
    with errors.open("rb") as file:
        file.seek(max(0, file.seek(0, os.SEEK_END) - _MOST_BYTES))
        text = file.read().decode(errors="replace")
    lines = [each.strip() for each in text.splitlines() if each.strip()]
    return lines[-1][:1000] if lines else ""
