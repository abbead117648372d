"""DrainFile: a file by which an operator takes a server out of its balancer."""

from __future__ import annotations

import os
import time


class DrainFile:
    """The file of --drain-file. Any thread.

    since_ns   time of the server's start; a file that was changed before does not count
    """

    def __init__(self, path: str, since_ns: int | None = None):
        self._path = path
        self._since_ns = time.time_ns() if since_ns is None else since_ns

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
