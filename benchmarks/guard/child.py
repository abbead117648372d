"""A Python model's child on a thread of this process, so that one count includes both sides of the channel.

server.template ─► [OnThread] ─► backend_python.child.main.Child.  Both sides run the same code as in two
processes: messages use the same socket, tensors the same arenas. Only the kernel's work differs, which is not
counted. valgrind cannot run the template, which uses pidfd_open.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from collections.abc import Iterator, Sequence

from backend_python.api import host as api_host
from backend_python.child.main import Child as Served
from backend_python.child.outgoing import Closed
from backend_python.server import template

from benchmarks.missing import Missing

JOIN_S = 10.0


class OnThread:
    """Replacement for a template's Child: a thread that serves one instance.

    pidfd    a pipe, readable when the thread has ended
    """

    leaving = "it is left alone"
    status = 0
    pid = 0

    def __init__(self, fds: Sequence[int]):
        channel, inputs, outputs = (os.dup(fd) for fd in fds[:3])
        self.pidfd, self._ended = os.pipe()
        self._thread = threading.Thread(
            target=self._serve, args=(channel, inputs, outputs), daemon=True
        )
        self._thread.start()

    def _serve(self, channel: int, inputs: int, outputs: int) -> None:
        served = Served(socket.socket(fileno=channel), inputs, outputs)
        try:
            with api_host.running(served.host), contextlib.suppress(Closed):
                served.serve()
        finally:
            served.connection.close()
            os.close(self._ended)

    def kill(self, why: str = "") -> None:
        """Do nothing: a thread cannot be killed; it ends when its channel is closed."""

    leave = kill

    def wait(self, timeout_s: float | None = None) -> None:
        """Wait until the thread has ended."""
        self._thread.join(JOIN_S if timeout_s is None else timeout_s)
        if self._thread.is_alive():
            raise TimeoutError

    def close(self) -> None:
        """Close the pipe. Call it after `wait`."""
        os.close(self.pidfd)


@contextlib.contextmanager
def on_threads() -> Iterator[None]:
    """Let children that start in this context be threads of this process."""
    shared = template.template
    if "fork" in vars(shared):
        raise Missing("children are on threads already")
    shared.fork = lambda fds, timeout_s, what=b"": OnThread(fds)
    try:
        yield
    finally:
        del shared.fork
