"""CaptureFiles: the files of one process in the folder of a capture."""

from __future__ import annotations

import logging
import os
import re
import time
from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from core.errors import unavailable
from core_capture.records.reader import FIRST_LINE, SUFFIX

_OF_WORKER = re.compile(rf"capture-\d+T\d+-w(\d+)-\d+-\d+{re.escape(SUFFIX)}")

logger = logging.getLogger("core")


class CaptureFiles:
    """Writes records into files, and removes the oldest files of this worker. One thread at a time.

    The files of an earlier server with more workers count, too: worker n of N has those of the workers n,
    n + N, n + 2N, …

    most_bytes   of all files of this worker together
    file_bytes   size of a file at which the next one begins
    workers      number of the workers that write into the folder
    """

    def __init__(
        self, folder: str, worker: int, most_bytes: int, file_bytes: int, workers: int = 1
    ):
        """Make the folder. Raises CoreError(UNAVAILABLE) if it cannot be written to."""
        self.folder = Path(folder)
        self._worker = worker
        self._workers = workers
        self._most_bytes = most_bytes
        self._file_bytes = min(file_bytes, most_bytes)
        self._file = -1
        self._size = 0  # of the current file
        self._number = 0
        started = time.strftime("%Y%m%dT%H%M%S", time.gmtime())
        self._name = f"capture-{started}-w{worker}-{os.getpid()}"
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            # Requests are as secret as what models are for: only the owner reads them.
            if not os.access(self.folder, os.W_OK | os.X_OK):
                raise PermissionError(13, "Permission denied")
        except OSError as error:
            raise unavailable(f"--capture={folder} cannot be written: {error.strerror}") from None

    def write(self, pieces: Sequence[bytes]) -> None:
        """Append records. Raises OSError: they may be incomplete, and the next ones begin a file."""
        size = sum(map(len, pieces))
        if self._file < 0 or self._size + size > self._file_bytes or self._is_removed():
            self._begin(size)
        try:
            rest = memoryview(b"".join(pieces))
            while rest:
                rest = rest[os.write(self._file, rest) :]
            self._size += size
        except OSError:
            self.close()
            raise

    def has_room(self, size: int) -> bool:
        """Return whether the current file takes `size` bytes more."""
        return self._file >= 0 and self._size + size <= self._file_bytes

    def close(self) -> None:
        """End the current file; a later record begins a new one."""
        file, self._file = self._file, -1
        if file >= 0:
            os.close(file)

    def _begin(self, size: int) -> None:
        """Begin a file that has room for a record of `size` bytes."""
        self.close()
        self._remove_oldest(max(size + len(FIRST_LINE), self._file_bytes))
        flags = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_APPEND | getattr(os, "O_BINARY", 0)
        while self._file < 0:
            self._number += 1
            path = self.folder / f"{self._name}-{self._number:06d}{SUFFIX}"
            # A capture of the same second, which has ended, may have files of these names.
            with suppress(FileExistsError):
                self._file = os.open(path, flags, 0o600)
        os.write(self._file, FIRST_LINE)
        self._size = len(FIRST_LINE)

    def _is_own(self, path: Path) -> bool:
        found = _OF_WORKER.fullmatch(path.name)
        return found is not None and int(found[1]) % self._workers == self._worker

    def _is_removed(self) -> bool:
        return os.fstat(self._file).st_nlink == 0

    def _remove_oldest(self, room: int) -> None:
        """Remove files of this worker, also of earlier servers, until there is `room` for another one."""
        sizes = {}
        for path in sorted(self.folder.glob(f"capture-*-w*-*{SUFFIX}")):
            if not self._is_own(path):
                continue
            with suppress(OSError):  # another server may remove it, too
                sizes[path] = path.stat().st_size
        total = sum(sizes.values())
        for path, size in sizes.items():
            if total + room <= self._most_bytes:
                return
            with suppress(OSError):
                path.unlink()
            total -= size
