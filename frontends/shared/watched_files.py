"""WatchedFiles: what was made from files is made again when they change.

timer, signal ─► [look] ─► renew of those whose files changed.  What cannot be made again stays as it was.
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
    """Files that are read again when they change. Loop thread only.

    interval_s   polling interval in seconds; 0 disables polling, an explicit `look` still works
    """

    def __init__(self, interval_s: float):
        self._interval_s = interval_s
        self._watched: list[_Watched] = []
        self._timer: asyncio.TimerHandle | None = None
        self._closed = False

    def add(self, what: str, paths: Iterable[str], renew: Callable[[], object]) -> None:
        """Call `renew` when one of the files has changed since now.

        what    they are, for the log
        renew   reads all of them; raises CoreError, and leaves all as it was, if they cannot be used
        """
        files = tuple(path for path in paths if path)
        self._watched.append(_Watched(what, files, renew, _stamps(files)))
        if self._timer is None and self._interval_s > 0 and not self._closed:
            self._wait()

    def look(self, anyway: bool = False) -> None:
        """Renew what comes from files that have changed; `anyway` also what comes from others."""
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
                # Whatever it is: the others are still to be looked at, and this one the next time too.
                logger.exception("%s cannot be read; what was read before stays in use", each.what)
            else:
                logger.info("%s: read again", each.what)

    def close(self) -> None:
        """Look no more."""
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
    """What changes with a file, through links as those of mounted secrets; None for none."""
    try:
        found = os.stat(path)
    except OSError:
        return None
    # The time of the inode too: a file may be replaced by one of its size and its time.
    return found.st_ino, found.st_size, found.st_mtime_ns, found.st_ctime_ns
