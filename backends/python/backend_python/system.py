"""What this backend asks of the operating system: in a form of Linux, and in one that POSIX systems share.

    memory of arenas     memfd, sealed against shrinking    temporary file without a name
    end of a child       pidfd                              socket to which the template writes the status
    end of the server    hang-up of the channel             hang-up of that socket

CORE_PORTABLE=1 selects the second form on Linux too. Server and children import this module: it needs the
standard library only, and children inherit the variable.
"""

from __future__ import annotations

import contextlib
import mmap
import os
import select
import signal
import socket
import sys

PORTABLE = sys.platform != "linux" or os.environ.get("CORE_PORTABLE", "0") not in ("", "0")

_status = -1  # in a child, portable: its end of the socket


def create_memory(name: str, size: int) -> int:
    """Return the descriptor of new memory of `size` bytes, which can grow; the caller closes it."""
    if PORTABLE:
        import tempfile  # children do not need it

        fd, path = tempfile.mkstemp(prefix=f"core-{name}-")
        os.unlink(path)
        os.ftruncate(fd, size)
        return fd
    import fcntl

    fd = os.memfd_create(name, os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    os.ftruncate(fd, size)
    fcntl.fcntl(fd, fcntl.F_ADD_SEALS, fcntl.F_SEAL_SHRINK | fcntl.F_SEAL_SEAL)
    return fd


def release_pages(fd: int, mapping: mmap.mmap, start: int, end: int) -> None:
    """Free the pages from `start` to `end` of memory whose last used page is before `start`."""
    if PORTABLE:
        size = os.fstat(fd).st_size
        os.ftruncate(fd, start)
        os.ftruncate(fd, size)
    else:
        mapping.madvise(mmap.MADV_REMOVE, start, end - start)


def readable(timeout_s: float | None, *fds: int) -> bool:
    """Wait until a file descriptor is readable. Return False if none is within `timeout_s` seconds."""
    poll = select.poll()
    for fd in fds:
        poll.register(fd, select.POLLIN)
    return bool(poll.poll(None if timeout_s is None else timeout_s * 1000))


# the server ----------------------------------------------------------------


def report_channel() -> tuple[int, int]:
    """Return two descriptors: a child's exit status is read from the first and written to the second."""
    if not PORTABLE:
        return os.pipe()
    report, status = socket.socketpair()
    return report.detach(), status.detach()


def kill(pid: int, pidfd: int) -> None:
    """Kill a process. Does nothing if it has ended.

    pidfd   its pidfd; portable: the end on which its exit status is read
    """
    with contextlib.suppress(ProcessLookupError):
        if not PORTABLE:
            signal.pidfd_send_signal(pidfd, signal.SIGKILL)
        elif not readable(0, pidfd):  # otherwise another process may have its id
            os.kill(pid, signal.SIGKILL)


def process_state(pid: int) -> str:
    """Return the letter of a process's state, such as T for stopped; "" in the portable form: unknown."""
    if PORTABLE:
        return ""
    try:
        with open(f"/proc/{pid}/stat") as file:
            return file.read().rpartition(")")[2].split()[0]
    except (OSError, IndexError):  # it has ended
        return ""


# the template ----------------------------------------------------------------


class Pidfds:
    """Children of this process, watched by a pidfd each. Linux."""

    def __init__(self, poll: select.poll):
        self._poll = poll
        self._pids: dict[int, int] = {}

    def add(self, pid: int) -> list[int]:
        """Watch a new child. Return the descriptors that the server needs for it."""
        pidfd = os.pidfd_open(pid)  # safe: only this process reaps, so the id is not reused
        self._pids[pidfd] = pid
        self._poll.register(pidfd, select.POLLIN)
        return [pidfd]

    def reap(self, fd: int) -> list[tuple[int, int]]:
        """Return the children that have ended, as waitpid does. Call it when `fd` is readable."""
        self._poll.unregister(fd)
        os.close(fd)
        return [os.waitpid(self._pids.pop(fd), 0)]

    def abandon(self) -> None:
        """Close the pidfds in a forked child, which does not watch its parent's children."""
        for pidfd in self._pids:
            os.close(pidfd)


class ChildSignals:
    """Children of this process, watched by SIGCHLD. Portable; the methods are those of Pidfds."""

    def __init__(self, poll: select.poll):
        self._pids: set[int] = set()
        self._woken, self._wake = socket.socketpair()
        for each in (self._woken, self._wake):
            each.setblocking(False)
        signal.signal(signal.SIGCHLD, lambda *_: None)
        signal.set_wakeup_fd(self._wake.fileno(), warn_on_full_buffer=False)
        poll.register(self._woken, select.POLLIN)

    def add(self, pid: int) -> list[int]:
        self._pids.add(pid)
        return []

    def reap(self, fd: int) -> list[tuple[int, int]]:
        with contextlib.suppress(BlockingIOError):
            self._woken.recv(1 << 12)
        ended = [os.waitpid(pid, os.WNOHANG) for pid in self._pids]
        found = [(pid, status) for pid, status in ended if pid]
        self._pids.difference_update(pid for pid, _ in found)
        return found

    def abandon(self) -> None:
        signal.set_wakeup_fd(-1)
        signal.signal(signal.SIGCHLD, signal.SIG_DFL)
        self._woken.close()
        self._wake.close()


# a child ----------------------------------------------------------------


def keep_status(fd: int) -> None:
    """Close `fd`, to which the status is written. The portable form keeps it, to notice the server's end."""
    global _status
    if not PORTABLE:
        os.close(fd)
        return
    os.set_inheritable(fd, False)
    _status = fd
    # Processes that a model forks must not look like the model.
    os.register_at_fork(after_in_child=lambda: os.close(fd))


def wait_for_server(channel: socket.socket) -> None:
    """Block until the server has ended, or has closed its end of the channel."""
    if PORTABLE:
        with contextlib.suppress(OSError):
            os.read(_status, 1)  # nothing is ever sent to it
        return
    poll = select.poll()
    poll.register(channel, 0)  # only POLLHUP, which needs no registration, wakes this thread
    poll.poll()


def prefer_as_victim(score: int) -> None:
    """Raise the OOM score of this process, where the system has one."""
    if PORTABLE:
        return
    with contextlib.suppress(OSError, ValueError), open("/proc/self/oom_score_adj", "r+") as file:
        raised = min(1000, int(file.read()) + score)
        file.seek(0)
        file.write(str(raised))
