"""The process that children are copies of: `python -m backend_python.child.template CONTROL`.

It has imported what every child needs and does nothing with it, so that a child starts within some
milliseconds and shares these pages with the others. PROTOCOL.md explains what comes over CONTROL.
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
    """Only waits, forks and reaps. numpy's BLAS may have threads here; it ends them before a fork."""

    def __init__(self, control: socket.socket):
        self._control = control
        self._children: dict[int, tuple[int, int]] = {}  # pidfd → process id, status

    def serve(self) -> None:
        """Until the server hangs up; the children go on, and end by themselves."""
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
        """Fork the child that is asked for; None if the server has gone."""
        message, fds, _, _ = socket.recv_fds(self._control, 1, ASKED)
        if not message:
            return None
        *channels, out, err, status = fds
        with warnings.catch_warnings():  # of those threads
            warnings.simplefilter("ignore", DeprecationWarning)
            pid = os.fork()
        if not pid:
            main = child.main if message == CHILD else worker.main
            self._become(main, channels, (out, err), status)
        pidfd = os.pidfd_open(pid)  # nobody else reaps: it is that process
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
        """In the new process: forget the template, and serve. Does not return."""
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
            os._exit(1)  # main has left by itself if it could

    def _reap(self, pidfd: int) -> None:
        """Tell how a child has ended."""
        pid, status = self._children.pop(pidfd)
        _, ending = os.waitpid(pid, 0)
        try:
            os.write(status, STATUS.pack(os.waitstatus_to_exitcode(ending)))
        except BrokenPipeError:
            pass  # the server does not want to know
        os.close(status)
        os.close(pidfd)


def main() -> None:
    # The server's signals, as in a child. A closed pipe is an error here, not the end.
    for number in (signal.SIGINT, signal.SIGTERM):
        signal.signal(number, lambda *_: None)
    control = socket.socket(fileno=int(sys.argv[1]))
    os.set_inheritable(control.fileno(), False)
    gc.disable()
    gc.freeze()  # the collector writes to every object it looks at, and so would unshare their pages
    Template(control).serve()
    os._exit(0)


if __name__ == "__main__":
    main()
