"""Workers: processes that instances share, EXECUTION_MODE shared. Thread-safe.

SharedWorker has the interface of a template, Tenant that of a forked child.
"""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from collections.abc import Sequence
from typing import Any
from weakref import WeakValueDictionary

from backend_python import protocol
from backend_python.server.printed import Printed
from backend_python.server.template import Child, Ended, SharedTemplate
from backend_python.system import readable

END_S = 5.0  # from the end of the last instance to the end of the worker


class Tenant:
    """One instance in a worker, with the interface of `template.Child`.

    pid     of the worker
    pidfd   readable when the worker has ended
    """

    leaving = "its thread is left to end by itself"

    def __init__(self, worker: Worker, pidfd: int, ended: int):
        self.pid = worker.pid
        self.pidfd = pidfd
        self._worker = worker
        self._ended = ended  # a pipe: readable when the instance has ended
        self._left = False

    @property
    def status(self) -> int | None:
        """The exit status of the worker, after its end."""
        return self._worker.status()

    @property
    def killed(self) -> str:
        """The reason why the server killed the worker, for any of its instances."""
        return self._worker.child.killed

    def kill(self, why: str = "") -> None:
        """End the worker at once, with all its instances."""
        self._worker.kill(why)

    def leave(self) -> None:
        """Leave an instance that is not needed any more.

        If it is busy, the worker continues, and the instance ends after its current work.
        """
        self._left = True

    def wait(self, timeout_s: float | None = None) -> None:
        """Wait until the instance or the worker has ended. After `leave`, return at once.

        Raise TimeoutError after `timeout_s` seconds.
        """
        if not self._left and not readable(timeout_s, self._ended, self.pidfd):
            raise TimeoutError

    def close(self) -> None:
        """Release the instance, after `wait` or `leave`. The worker ends with its last instance."""
        os.close(self.pidfd)
        self._worker.release(self._ended)


class Worker:
    """One worker process."""

    def __init__(self, name: str, template: SharedTemplate, timeout_s: float):
        self._control, theirs = socket.socketpair()
        self._printed = Printed(name)
        try:
            with theirs:
                fds = (theirs.fileno(), *self._printed.fds)
                self.child: Child = template.fork(fds, timeout_s, protocol.WORKER)
        except BaseException:
            self._printed.abandon()
            self._control.close()
            raise
        self._printed.begin()
        self.pid = self.child.pid
        self._lock = threading.Lock()  # guards what follows, and the end of the child
        self._tenants = 0
        self._over = False  # it takes no more instances: it was killed, or its last one has ended
        self._behind: set[int] = set()  # pipes that report the end of instances that were left

    def admit(self, fds: Sequence[int]) -> Tenant:
        """Add an instance with these file descriptors: channel, inputs, outputs, standard output and error.

        Raise Ended if the worker has ended.
        """
        with self._lock:
            if self._over or (self._tenants and readable(0, self.child.pidfd)):
                raise Ended
            self._tenants += 1
            pidfd = os.dup(self.child.pidfd)
        ended, theirs = os.pipe()
        tenant = Tenant(self, pidfd, ended)
        try:
            socket.send_fds(self._control, [b"i"], [*fds, theirs])
        except OSError:
            tenant.close()
            raise Ended from None
        finally:
            os.close(theirs)
        return tenant

    def release(self, ended: int) -> None:
        """Remove an instance that has ended or was left. After the last one, end the worker.

        ended   the pipe that reports its end; closed here
        """
        with self._lock:
            self._behind.add(ended)
            for each in [each for each in self._behind if readable(0, each)]:
                self._behind.discard(each)
                os.close(each)
            self._tenants -= 1
            if self._tenants:
                return
            self._over = True
        # The last instance was released.
        self._control.close()
        if self._behind:  # do not wait for instances that were left
            self.child.kill()
            protocol.close_fds(*self._behind)
        try:
            self.child.wait(END_S)
        except TimeoutError:
            self.child.kill()
            self.child.wait()
        self._printed.close()
        self.child.close()

    def kill(self, why: str) -> None:
        """Kill the worker at once. Call only while it has an instance."""
        with self._lock:
            self._over = True
            self.child.kill(why)

    def status(self) -> int | None:
        """Return the exit status as in template.Child. Call only while the worker has an instance."""
        with self._lock, contextlib.suppress(TimeoutError):
            self.child.wait(0)
        return self.child.status


class SharedWorker:
    """The shared worker of several models.

    It starts with the first instance, ends with the last, and is replaced after it has died.

    name   name in the log for output that belongs to no instance
    """

    def __init__(self, name: str, template: SharedTemplate):
        self._name = name
        self._template = template
        self._lock = threading.Lock()
        self._worker: Worker | None = None

    def fork(self, fds: Sequence[int], timeout_s: float) -> Tenant:
        """Add an instance to the worker; start a worker if none runs.

        Raise Ended if the new worker has ended, TimeoutError if it is not forked within `timeout_s` seconds.
        """
        with self._lock:
            if self._worker is not None:
                with contextlib.suppress(Ended):
                    return self._worker.admit(fds)
            self._worker = Worker(self._name, self._template, timeout_s)
            return self._worker.admit(fds)


_workers: WeakValueDictionary[tuple[int, int, str], SharedWorker] = WeakValueDictionary()
_finding = threading.Lock()


def worker(server: Any, template: SharedTemplate, name: str) -> SharedWorker:
    """Return the worker of that name, for the models of one server and one environment.

    The owner holds server and template, so their ids cannot be reused meanwhile.
    """
    with _finding:
        found = _workers.get((id(server), id(template), name))
        if found is None:
            found = _workers[id(server), id(template), name] = SharedWorker(name, template)
        return found
