"""Folders of unpacked or installed environments, each made once.

Models of one server, workers of one server and servers of one machine may share a cache: one of them makes
an entry while the others wait, and the last user removes it. Locks are flock's: the end of a process
releases them.

    <key>/         the environment
    <key>.done     exists when the environment is complete; contains its source
    <key>.lock     locked shared by each user, exclusively to remove the entry
    <key>.making   locked exclusively, in addition to .lock, to make the entry
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
    """The entries that this process uses. Thread-safe.

    folder   folder of the entries, in which unused entries stay. If None, the entries are in a temporary
             folder of the user, and unused entries are removed
    """

    def __init__(self, folder: Path | None):
        self._kept = folder is not None
        self._folder = folder or Path(tempfile.gettempdir()) / f"core-environments-{os.geteuid()}"
        self._lock = threading.Lock()  # guards what follows
        self._swept = False
        self._held: dict[str, int] = {}  # key → file descriptor of its lock

    def entry(self, key: str, made_of: str, make: Make) -> Path:
        """Return the folder of a key; `make` creates it if it is missing. It stays until `close`.

        made_of   text for the file <key>.done
        make      called with the path of the folder, which does not exist; its errors are raised
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
        """Release all entries. If they are in a temporary folder, remove those that no other process uses."""
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
            if not self._swept:  # remove entries of servers that were killed
                self._swept = True
                for lock in self._folder.glob("*.lock"):
                    self._remove(lock.stem)

    def _make(self, key: str, made_of: str, make: Make) -> None:
        """Wait while another process or thread makes an entry; then make it if it does not exist."""
        path = self._folder / key
        making = _locked(self._file(key, "making"), fcntl.LOCK_EX)
        try:
            if self._file(key, "done").exists():
                return
            _remove_tree(path)  # an incomplete entry of a process that was killed
            make(path)
            self._file(key, "done").write_text(made_of + "\n")
        except BaseException:
            _remove_tree(path)
            raise
        finally:
            os.close(making)

    def _remove(self, key: str) -> None:
        """Remove an entry, unless this process or another one uses it."""
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
    """Lock a file and return its descriptor. Raises BlockingIOError if `how` has LOCK_NB and it is locked."""
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
        os.close(fd)  # the file was removed while this process waited


def _remove_tree(path: Path) -> None:
    if path.exists():
        shutil.rmtree(path, ignore_errors=True)
        if path.exists():
            logger.warning("'%s' cannot be removed", path)
