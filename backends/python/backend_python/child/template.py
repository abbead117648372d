"""The process from which children are forked: `python -m backend_python.child.template CONTROL`.

It imports the modules that every child needs, and does not use them. So a child starts within milliseconds
and shares the memory pages of these modules with other children.
PROTOCOL.md explains the messages on CONTROL.
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

from backend_python import system
from backend_python.child import main as child
from backend_python.child import worker
from backend_python.protocol import ASKED, CHILD, FORKED, STATUS


class Template:
    """The template process.

    It waits for requests on CONTROL and for the end of children. On a request it forks a child; when a child
    ends, it reports the exit status to the server. It must do nothing else and start no threads, because
    every fork copies its state. numpy's BLAS may have threads here; BLAS ends these itself, in its handler
    of forks.
    """

    def __init__(self, control: socket.socket):
        self._control = control
        self._children: dict[int, int] = {}  # process id → status
        self._poll = poll = select.poll()
        self._ends = system.ChildSignals(poll) if system.PORTABLE else system.Pidfds(poll)

    def serve(self) -> None:
        """Fork and reap children until the server closes CONTROL. The children then end by themselves."""
        self._poll.register(self._control, select.POLLIN)
        while True:
            for fd, _ in self._poll.poll():
                if fd != self._control.fileno():
                    self._reap(fd)
                elif not self._fork():
                    return

    def _fork(self) -> bool:
        """Read a request and fork its child; return True. Return False if the server has closed CONTROL."""
        message, fds, _, _ = socket.recv_fds(self._control, 1, ASKED)
        if not message:
            return False
        *channels, out, err, status = fds
        with warnings.catch_warnings():  # Python warns of a fork with threads
            warnings.simplefilter("ignore", DeprecationWarning)
            pid = os.fork()
        if not pid:
            main = child.main if message == CHILD else worker.main
            self._become(main, channels, (out, err), status)
        self._children[pid] = status
        for fd in (*channels, out, err):
            os.close(fd)
        if watched := self._ends.add(pid):
            socket.send_fds(self._control, [FORKED.pack(pid)], watched)
        else:
            self._control.sendall(FORKED.pack(pid))
        return True

    def _become(
        self,
        main: Callable[..., None],
        channels: list[int],
        printed: tuple[int, int],
        status: int,
    ) -> None:
        """In the new process, close the template's descriptors and call `main`. This does not return."""
        try:
            self._control.close()
            self._ends.abandon()
            system.keep_status(status)
            for fd, theirs in zip(printed, (1, 2)):
                os.dup2(fd, theirs)
                os.close(fd)
            for other in self._children.values():
                os.close(other)
            gc.enable()
            main(*channels)
        except BaseException:
            sys.excepthook(*sys.exc_info())
        finally:
            os._exit(1)  # `main` ends the process itself, unless it raises

    def _reap(self, fd: int) -> None:
        """Reap the children whose end `fd` signals, and report their exit status to the server."""
        for pid, ending in self._ends.reap(fd):
            status = self._children.pop(pid)
            try:
                os.write(status, STATUS.pack(os.waitstatus_to_exitcode(ending)))
            except BrokenPipeError:
                pass  # the server has closed its end
            os.close(status)


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
