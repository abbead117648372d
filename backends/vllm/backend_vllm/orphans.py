"""Ends vLLM's processes when the server is killed: otherwise they compute on, and keep the memory of a GPU.

vLLM calls `end_with_server` in each of its processes (entry point vllm.general_plugins).
"""

from __future__ import annotations

import ctypes
import os
import signal
import sys

# Process id of the server, in the environment of its processes; `vllm serve` does not have it.
VARIABLE = "CORE_VLLM_SERVER"
_PR_SET_PDEATHSIG = 1


def mark_server() -> None:
    """Let the processes that this server starts from now on end with it."""
    os.environ[VARIABLE] = str(os.getpid())


def end_with_server() -> None:
    """Have the kernel kill this process when the thread that has started it ends. Linux only.

    Does nothing in the server itself, and in processes of no server.
    """
    server = os.environ.get(VARIABLE, "")
    if sys.platform != "linux" or server in ("", str(os.getpid())):
        return
    ctypes.CDLL(None).prctl(_PR_SET_PDEATHSIG, signal.SIGKILL, 0, 0, 0)
    # The parent has died before. In a container the server itself may be process 1.
    if os.getppid() == 1 and server != "1":
        os.kill(os.getpid(), signal.SIGKILL)
