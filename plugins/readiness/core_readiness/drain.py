"""DrainFile: a file by which an operator takes a server out of its balancer."""

from __future__ import annotations

import os
import time

_START = "CORE_READINESS_START"  # in the environment: process and time of the start of a server of workers


class DrainFile:
    """The file of --drain-file. Any thread.

    since_ns   time of the server's start; a file that was changed before does not count
    """

    def __init__(self, path: str, since_ns: int):
        self._path = path
        self._since_ns = since_ns

    async def reason(self) -> str:
        """Return why the server wants no more requests, or ""."""
        try:
            changed_ns = os.stat(self._path).st_mtime_ns
        except OSError:  # no such file, or a folder of it is missing
            return ""
        return (
            "the server drains: the file of --drain-file exists"
            if changed_ns > self._since_ns
            else ""
        )


def workers_start() -> None:
    """Remember the time for the workers that this process starts, also for those that start again."""
    os.environ[_START] = f"{os.getpid()} {time.time_ns()}"


def start_ns() -> int:
    """Return when the server started: of a worker, when the process that started it did; else now."""
    process, _, time_ns = os.environ.get(_START, "").partition(" ")
    return int(time_ns) if process == str(os.getppid()) else time.time_ns()
