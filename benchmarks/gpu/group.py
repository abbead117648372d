"""Run a command, and end all processes that it leaves."""

from __future__ import annotations

import ctypes
import os
import signal
import subprocess
from collections.abc import Sequence

GRACE_S = 3.0
PR_SET_PDEATHSIG = 1


def run_group(command: Sequence[str], seconds: float) -> int | None:
    """Return the status of a command, or None if it had to be ended after `seconds`.

    The command gets a process group of its own. What is left of it is ended, such as servers that it started:
    they would hold their ports and their memory of the GPU.
    """
    process = subprocess.Popen(command, preexec_fn=_begin)
    try:
        return process.wait(seconds)
    except subprocess.TimeoutExpired:
        return None
    finally:
        _end(process)


def _begin() -> None:
    """Give this process a group of its own, and end it if its parent is killed."""
    os.setpgrp()
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, signal.SIGKILL)


def _end(process: subprocess.Popen[bytes]) -> None:
    for number in (signal.SIGTERM, signal.SIGKILL):
        try:
            os.killpg(process.pid, number)
            process.wait(GRACE_S)
        except ProcessLookupError:  # no process is left
            return
        except subprocess.TimeoutExpired:
            continue
