"""WatchedFiles: reads certificates, tokens and keys again when their files change.

timer ─► [look] ─► `renew` for changed files; SIGHUP: for all.  If it fails, the former content stays in use.
"""

from __future__ import annotations

import asyncio
import logging
import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass

from core.errors import CoreError

logger = logging.getLogger("core")

_Stamp = tuple[int, int, int, int]


@dataclass
class _Watched:
    what: str
    paths: tuple[str, ...]
    renew: Callable[[], object]
    stamps: tuple[_Stamp | None, ...]


class WatchedFiles:
    """Calls the function of a group of files when one of them has changed, or on request. Loop thread only.

    interval_s   polling interval in seconds; 0 disables polling, an explicit `look` still works
    """

    def __init__(self, interval_s: float):
        self._interval_s = interval_s
        self._watched: list[_Watched] = []
        self._timer: asyncio.TimerHandle | None = None
        self._closed = False

    def add(self, what: str, paths: Iterable[str], renew: Callable[[], object]) -> None:
        """Watch a group of files: call `renew` after a change of one of them, and in each `look(True)`.

        what    name of the group in the log
        paths   empty ones are ignored
        renew   reads all files of the group; if it raises, what was read before stays in use
        """
        files = tuple(path for path in paths if path)
        self._watched.append(_Watched(what, files, renew, _stamps(files)))
        if self._timer is None and self._interval_s > 0 and not self._closed:
            self._wait()

    def look(self, anyway: bool = False) -> None:
        """Call `renew` of each group that has a changed file, or of every group if `anyway` is true.

        What `renew` raises is logged, and not raised; the group is read again only after its next change.
        """
        for each in self._watched:
            stamps = _stamps(each.paths)
            if stamps == each.stamps and not anyway:
                continue
            each.stamps = stamps
            try:
                each.renew()
            except CoreError as error:
                logger.error("%s: %s; what was read before stays in use", each.what, error.message)
            except Exception:
                # Any error: the other groups are still checked, and this one again after a change.
                logger.exception("%s cannot be read; what was read before stays in use", each.what)
            else:
                logger.info("%s: read again", each.what)

    def close(self) -> None:
        """Stop polling."""
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()

    def _wait(self) -> None:
        loop = asyncio.get_running_loop()
        self._timer = loop.call_later(self._interval_s, self._look_on_time)

    def _look_on_time(self) -> None:
        self.look()
        self._wait()


def _stamps(paths: Iterable[str]) -> tuple[_Stamp | None, ...]:
    return tuple(map(_stamp, paths))


def _stamp(path: str) -> _Stamp | None:
    """Return inode, size and times of a file; None if they cannot be read.

    The function follows links, because mounted secrets are links.
    """
    try:
        found = os.stat(path)
    except OSError:
        return None
    # With the time of the inode: a new file may have the size and the time of the old one.
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
