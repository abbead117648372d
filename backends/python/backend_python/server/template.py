"""The server's side of template processes, from which child processes are forked. Thread-safe.

One template serves all Python models that run with the server's packages. Each other environment has its
own template. A template starts with its first user and ends with the last.
"""

from __future__ import annotations

import os
import socket
import subprocess
import sys
import threading
from collections.abc import Callable, Sequence
from typing import NamedTuple

from backend_python import system
from backend_python.protocol import CHILD, FORKED, STATUS

END_S = 5.0  # from the end of the channel to the end of the template
REPORT_S = 1.0  # from the end of a child to the report of its status


class Ended(Exception):
    """The template has ended."""


class Child:
    """A forked process, whose parent is the template.

    pid     of the process
    pidfd   readable when the process has ended
    status  its exit status, or the negative number of a signal; None before the end is known, or if
            it was not reported
    killed  the reason why the server killed it, "" if it did not, or gave no reason
    """

    leaving = "it is killed"

    def __init__(self, pid: int, pidfd: int, report: int):
        self.dropped: Callable[[], None] = lambda: None  # called when it is closed
        self.pid = pid
        self.pidfd = pidfd
        self.status: int | None = None
        self.killed = ""
        self._report = report  # the template writes the status to its other end

    def kill(self, why: str = "") -> None:
        """Kill the process; call `wait` after that. The first reason is kept."""
        self.killed = self.killed or why
        system.kill(self.pid, self.pidfd)

    leave = kill  # for a child that is not needed any more

    def wait(self, timeout_s: float | None = None) -> None:
        """Wait until the process has ended, and read its status. Raise TimeoutError after `timeout_s`."""
        if not system.readable(timeout_s, self.pidfd):
            raise TimeoutError
        if self.status is None and system.readable(REPORT_S, self._report):
            report = os.read(self._report, STATUS.size)
            if len(report) == STATUS.size:
                (self.status,) = STATUS.unpack(report)

    def close(self) -> None:
        """Close the descriptors. Call after `wait`."""
        os.close(self.pidfd)
        os.close(self._report)
        self.dropped()


class Command(NamedTuple):
    """The command that starts a template; the number of its control socket follows the arguments.

    variables   environment variables; None for the server's
    """

    arguments: list[str]
    variables: dict[str, str] | None = None


_OWN = Command(
    [sys.executable, "-m", "backend_python.child.template"]
)  # with the server's packages


class Template:
    """One template process.

    surroundings  environment variables and current directory of the template and its children
    """

    def __init__(self, command: Callable[[], Command] = lambda: _OWN) -> None:
        arguments, variables = command()
        self.surroundings = surroundings()
        self._control, theirs = socket.socketpair()
        with theirs:
            self._popen = subprocess.Popen(
                [*arguments, str(theirs.fileno())],
                stdin=subprocess.DEVNULL,
                env=variables,
                pass_fds=[theirs.fileno()],
            )

    def fork(self, fds: Sequence[int], timeout_s: float, what: bytes) -> Child:
        """Fork a child with these file descriptors: channel, inputs, outputs, standard output and error.

        `what` can also ask for a worker; see PROTOCOL.md. Raise Ended if the template has ended, TimeoutError
        if it has not forked after `timeout_s` seconds.
        """
        report, status = system.report_channel()
        try:
            socket.send_fds(self._control, [what], [*fds, status])
            if not system.readable(timeout_s, self._control.fileno()):
                raise TimeoutError
            message, pidfds, _, _ = socket.recv_fds(self._control, FORKED.size, 1)
            if not message:
                raise Ended
        except (OSError, Ended) as error:
            os.close(report)
            if isinstance(error, (TimeoutError, Ended)):
                raise
            raise Ended from None
        finally:
            os.close(status)
        (pid,) = FORKED.unpack(message)
        return Child(pid, pidfds[0] if pidfds else os.dup(report), report)

    def close(self) -> None:
        """End the process; its children continue."""
        self._control.close()
        try:
            self._popen.wait(END_S)
        except subprocess.TimeoutExpired:
            self._popen.kill()
            self._popen.wait()


class SharedTemplate:
    """The template of a server, or of one of its environments.

    It starts with the first child. It ends when it has no child and each `keep` was undone by `drop`.

    command   called before each start of a template process
    """

    def __init__(self, command: Callable[[], Command] = lambda: _OWN) -> None:
        self._command = command
        self._lock = threading.Lock()
        self._holders = 0
        self._template: Template | None = None

    def keep(self) -> None:
        """Keep the template running without children. Call `drop` after that."""
        with self._lock:
            self._holders += 1

    def drop(self) -> None:
        """Undo one `keep`, or one fork. The template ends if no other `keep` or fork is open."""
        with self._lock:
            self._holders -= 1
            if self._holders:
                return
            template, self._template = self._template, None
        if template is not None:
            template.close()

    def fork(self, fds: Sequence[int], timeout_s: float, what: bytes = CHILD) -> Child:
        """Fork a child as Template.fork does. The child's `close` releases the template.

        This call replaces a template that has ended or has other surroundings. If the template does not
        answer, the call raises TimeoutError; the next call starts another template.
        """
        with self._lock:
            if self._template is not None and self._template.surroundings != surroundings():
                self._template.close()
                self._template = None
            if self._template is None:
                self._template = Template(self._command)
            try:
                child = self._template.fork(fds, timeout_s, what)
            except Ended:
                self._template.close()
                self._template = Template(self._command)
                child = self._template.fork(fds, timeout_s, what)
            except TimeoutError:
                self._template.close()
                self._template = None
                raise
            child.dropped = self.drop
            self._holders += 1
            return child


template = SharedTemplate()


def surroundings() -> tuple[dict[str, str], int, int]:
    """Return what a process inherits from its starter: environment variables and current directory."""
    here = os.stat(".")
    return dict(os.environ), here.st_dev, here.st_ino
