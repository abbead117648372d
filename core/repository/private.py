"""Private folders that core makes for models: only this user can enter them; they do not outlive their use.

The last model that holds a folder removes it. Folders that still exist when the interpreter ends are
removed then. Folders of a killed process are removed by the next process that makes such a folder in the
same place: it sees that their locks are free.
"""

from __future__ import annotations

import atexit
import logging
import os
import shutil
import tempfile
import threading
from pathlib import Path

from core.repository.source import ModelDirectory
from core.system import platform

try:
    import fcntl
except ImportError:  # Windows: folders have no locks, and those of killed processes stay
    fcntl = None  # type: ignore[assignment]

logger = logging.getLogger("core")

PREFIX = "core-private-"

_MEMORY = platform.MEMORY
_NO_LOCK = -1

_lock = threading.Lock()
_kept: dict[Path, PrivateDirectory] = {}  # folders of this process that still exist; under _lock
_swept: set[Path] = set()  # already searched for folders of dead processes; under _lock


class PrivateDirectory(ModelDirectory):
    """A new, empty folder (mode 0700). It is locked while it exists, if folders can be. Any thread.

    where   the parent folder; None for the folder of temporary files
    Raises OSError if it cannot be made.
    """

    def __init__(self, where: Path | None = None):
        where = where or Path(tempfile.gettempdir())
        _sweep(where)
        self._root, self._descriptor = _locked_folder(where)
        self.process = os.getpid()
        with _lock:
            _kept[self._root] = self
        super().__init__(self._root / "model")
        self.path.mkdir(0o700)

    def remove(self) -> None:
        """Remove the folder with its contents; a second call does nothing."""
        with _lock:
            if _kept.pop(self._root, None) is None:
                return
        shutil.rmtree(self._root, ignore_errors=True)
        if self._descriptor != _NO_LOCK:
            os.close(self._descriptor)


def in_memory(byte_size: int) -> PrivateDirectory:
    """Return a folder in memory if so many bytes are free there; else a folder on disk.

    Logs the reason for a folder on disk, because its files may be secret.
    """
    try:
        status = os.statvfs(_MEMORY)
        free = status.f_bavail * status.f_frsize
        if byte_size <= free:
            return PrivateDirectory(_MEMORY)
        reason = f"it has {free} bytes left of {byte_size}"
    except OSError as error:
        reason = error.strerror or type(error).__name__
    found = PrivateDirectory()
    logger.warning(
        "files of a model are decrypted to '%s', which may be a disk: '%s' cannot take them (%s)",
        found.path,
        _MEMORY,
        reason,
    )
    return found


def _locked_folder(where: Path) -> tuple[Path, int]:
    while True:
        root = Path(tempfile.mkdtemp(prefix=PREFIX, dir=where))
        if fcntl is None:
            return root, _NO_LOCK
        try:
            descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        except FileNotFoundError:  # another process took it for an abandoned one and removed it
            continue
        try:
            if _is_ours(root, descriptor):
                return root, descriptor
        except OSError as error:
            # No other process can lock it either, so none takes it for an abandoned one.
            logger.debug("folders in '%s' cannot be locked: %s", where, error)
            return root, descriptor
        os.close(descriptor)


def _is_ours(root: Path, descriptor: int) -> bool:
    """Lock the folder. Return whether the lock was free and the folder still exists.

    Raises OSError on a file system without locks for folders (NFS has none).
    """
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    try:
        return os.path.samestat(os.stat(root, follow_symlinks=False), os.fstat(descriptor))
    except FileNotFoundError:
        return False


def _sweep(where: Path) -> None:
    """Remove the folders of killed processes, once for each location."""
    with _lock:
        if where in _swept:
            return
        _swept.add(where)
    if fcntl is None:  # the owners are unknown
        return
    for root in where.glob(f"{PREFIX}*"):
        try:
            descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:  # gone meanwhile, not a folder, or owned by another user
            continue
        try:
            if os.fstat(descriptor).st_uid == os.getuid() and _is_ours(root, descriptor):
                shutil.rmtree(root, ignore_errors=True)
        except OSError:  # without locks it may be in use: it stays
            pass
        os.close(descriptor)


def leave_nothing() -> None:
    """Remove the folders of this process: at exit, or called before os._exit, also in a signal handler."""
    # Without the lock: its holder may never run again.
    for root, each in list(_kept.items()):
        if each.process == os.getpid():  # not in a forked child, which inherits the object
            shutil.rmtree(root, ignore_errors=True)


atexit.register(leave_nothing)
