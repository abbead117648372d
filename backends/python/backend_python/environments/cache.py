"""Folders of environments that were unpacked or installed, each made once.

Models of one server, workers of one server and servers of one machine may share a cache: an entry is
made by one of them while the others wait, and removed by the last. Locks are flock's, so whoever dies
lets go.

    <key>/         the environment
    <key>.done     it is whole; what it was made of
    <key>.lock     held shared by who uses it or is about to, exclusively by who removes it
    <key>.making   held exclusively by who makes it, beside the first
"""

from __future__ import annotations

import contextlib
import fcntl
import logging
import os
import shutil
import stat
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

from backend_python.environments import Unusable

logger = logging.getLogger("core")

Make = Callable[[Path], None]


class Cache:
    """Entries that this process uses. Any thread.

    folder   to keep them in when nobody uses them any more; None: a temporary folder of the user, where
             those that nobody uses are removed
    """

    def __init__(self, folder: Path | None):
        self._kept = folder is not None
        self._folder = folder or Path(tempfile.gettempdir()) / f"core-environments-{os.geteuid()}"
        self._lock = threading.Lock()  # guards what follows
        self._swept = False
        self._held: dict[str, int] = {}  # key → file descriptor of its lock

    def entry(self, key: str, made_of: str, make: Make) -> Path:
        """Return the folder of a key; `make` creates it if it is missing. It stays until `close`.

        made_of   for people who look into the cache
        make      gets the path of the folder, where nothing is; what it raises is raised
        """
        self._open()
        fd = _locked(self._file(key, "lock"), fcntl.LOCK_SH)
        try:
            if not self._file(key, "done").exists():
                self._make(key, made_of, make)
        except BaseException:
            os.close(fd)
            raise
        with self._lock:
            if self._held.setdefault(key, fd) != fd:
                os.close(fd)
        return self._folder / key

    def close(self) -> None:
        """Release all entries. Unused entries in a temporary folder are removed."""
        with self._lock:
            held, self._held = self._held, {}
        for key, fd in held.items():
            os.close(fd)
            if not self._kept:
                self._remove(key)

    def _open(self) -> None:
        try:
            self._folder.mkdir(mode=0o700, parents=True, exist_ok=True)
            found = self._folder.lstat()
        except OSError as error:
            raise Unusable(f"there is no cache folder '{self._folder}': {error}") from None
        if self._kept:
            return
        # Its name is known to every user of the machine.
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
            raise Unusable(
                f"the cache folder '{self._folder}' is not this user's alone; remove it, or name "
                "another with --backend-config=python,environment-cache-directory=PATH"
            )
        with self._lock:
            if not self._swept:  # remove what servers have left that could not end as they should
                self._swept = True
                for lock in self._folder.glob("*.lock"):
                    self._remove(lock.stem)

    def _make(self, key: str, made_of: str, make: Make) -> None:
        """Unless another does in the meantime."""
        path = self._folder / key
        making = _locked(self._file(key, "making"), fcntl.LOCK_EX)
        try:
            if self._file(key, "done").exists():
                return
            _remove_tree(path)  # a part of it, if somebody has died
            make(path)
            self._file(key, "done").write_text(made_of + "\n")
        except BaseException:
            _remove_tree(path)
            raise
        finally:
            os.close(making)

    def _remove(self, key: str) -> None:
        """Unless somebody uses it."""
        with contextlib.suppress(BlockingIOError):
            fd = _locked(self._file(key, "lock"), fcntl.LOCK_EX | fcntl.LOCK_NB)
            try:
                self._file(key, "done").unlink(missing_ok=True)
                _remove_tree(self._folder / key)
                self._file(key, "making").unlink(missing_ok=True)
                self._file(key, "lock").unlink(missing_ok=True)
            finally:
                os.close(fd)

    def _file(self, key: str, suffix: str) -> Path:
        return self._folder / f"{key}.{suffix}"


def _locked(path: Path, how: int) -> int:
    """A file descriptor that holds the lock. BlockingIOError if it may not wait and is held elsewhere."""
    while True:
        fd = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o600)
        try:
            fcntl.flock(fd, how)
            with contextlib.suppress(FileNotFoundError):
                if os.path.samestat(os.fstat(fd), os.stat(path)):
                    return fd
        except BaseException:
            os.close(fd)
            raise
        os.close(fd)  # its entry was removed while we waited


def _remove_tree(path: Path) -> None:
    if path.exists():
        shutil.rmtree(path, ignore_errors=True)
        if path.exists():
            logger.warning("'%s' cannot be removed", path)
