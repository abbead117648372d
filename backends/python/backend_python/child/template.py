"""The process from which children are forked: `python -m backend_python.child.template CONTROL`.

It imports the modules that every child needs and does not use them. So a child starts within milliseconds
and shares these pages with other children. PROTOCOL.md explains the messages on CONTROL.
"""

from __future__ import annotations

import gc
import os
import select
import signal
import socket
import sys
import warnings
from collections.abc import Callable

from backend_python.child import main as child
from backend_python.child import worker
from backend_python.protocol import ASKED, CHILD, FORKED, STATUS


class Template:
    """The template process. It waits, forks and reaps, and must do nothing else.

    numpy's BLAS may have threads here; it ends them before a fork.
    """

    def __init__(self, control: socket.socket):
        self._control = control
        self._children: dict[int, tuple[int, int]] = {}  # pidfd → process id, status

    def serve(self) -> None:
        """Fork and reap children until the server closes CONTROL. The children then end by themselves."""
        poll = select.poll()
        poll.register(self._control, select.POLLIN)
        while True:
            for fd, _ in poll.poll():
                if fd != self._control.fileno():
                    poll.unregister(fd)
                    self._reap(fd)
                elif (pidfd := self._fork()) is not None:
                    poll.register(pidfd, select.POLLIN)
                else:
                    return

    def _fork(self) -> int | None:
        """Fork the requested child and return its pidfd; None if the server has closed CONTROL."""
        message, fds, _, _ = socket.recv_fds(self._control, 1, ASKED)
        if not message:
            return None
        *channels, out, err, status = fds
        with warnings.catch_warnings():  # Python warns of a fork with threads
            warnings.simplefilter("ignore", DeprecationWarning)
            pid = os.fork()
        if not pid:
            main = child.main if message == CHILD else worker.main
            self._become(main, channels, (out, err), status)
        pidfd = os.pidfd_open(pid)  # safe: only this process reaps, so the id is not reused
        self._children[pidfd] = (pid, status)
        for fd in (*channels, out, err):
            os.close(fd)
        socket.send_fds(self._control, [FORKED.pack(pid)], [pidfd])
        return pidfd

    def _become(
        self,
        main: Callable[..., None],
        channels: list[int],
        printed: tuple[int, int],
        status: int,
    ) -> None:
        """Close the template's descriptors and serve, in the new process. This function does not return."""
        try:
            self._control.close()
            os.close(status)
            for fd, theirs in zip(printed, (1, 2)):
                os.dup2(fd, theirs)
                os.close(fd)
            for pidfd, (_, other) in self._children.items():
                os.close(pidfd)
                os.close(other)
            gc.enable()
            main(*channels)
        except BaseException:
            sys.excepthook(*sys.exc_info())
        finally:
            os._exit(1)  # `main` ends the process itself, unless it raises

    def _reap(self, pidfd: int) -> None:
        """Reap a child and report its exit status to the server."""
        pid, status = self._children.pop(pidfd)
        _, ending = os.waitpid(pid, 0)
        try:
            os.write(status, STATUS.pack(os.waitstatus_to_exitcode(ending)))
        except BrokenPipeError:
            pass  # the server has closed its end
        os.close(status)
        os.close(pidfd)


def main() -> None:
    # The server's signals, as in a child. A closed pipe is an error here, not the end.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: None)
    control = socket.socket(fileno=int(sys.argv[1]))
    os.set_inheritable(control.fileno(), False)
    gc.disable()
    gc.freeze()  # the collector writes to every object that it visits, which would unshare their pages
    Template(control).serve()
    os._exit(0)


if __name__ == "__main__":
    main()
