"""Folders that core makes for models: only this user may enter them, and no end of the process leaves them.

What is loaded from one holds it as any ModelDirectory; the last who lets go removes it. The others are
removed when the interpreter ends. A process that was killed leaves its folders to the next one, which knows
by their locks that nobody has them any more.
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

try:
    import fcntl
except ImportError:  # Windows: folders have no locks, and those of processes that were killed stay
    fcntl = None  # type: ignore[assignment]

logger = logging.getLogger("core")

PREFIX = "core-private-"

_MEMORY = Path("/dev/shm")
_NO_LOCK = -1

_lock = threading.Lock()
_kept: dict[Path, PrivateDirectory] = {}  # not yet removed, of this process; under _lock
_swept: set[Path] = set()  # where it has been looked for folders of dead processes; under _lock


class PrivateDirectory(ModelDirectory):
    """A new folder (mode 0700), empty, locked as long as it is there. Any thread.

    where   the folder to make it in; None for that of temporary files
    Raises OSError when it cannot be made.
    """

    def __init__(self, where: Path | None = None):
        where = where or Path(tempfile.gettempdir())
        _sweep(where)
        self._root, self._descriptor = _locked_folder(where)
        self._process = os.getpid()
        with _lock:
            _kept[self._root] = self
        super().__init__(self._root / "model")
        self.path.mkdir(0o700)

    def remove(self) -> None:
        """Remove it with all that is in it; a second time does nothing."""
        with _lock:
            if _kept.pop(self._root, None) is None:
                return
        shutil.rmtree(self._root, ignore_errors=True)
        if self._descriptor != _NO_LOCK:
            os.close(self._descriptor)

    def leave(self) -> None:
        """The process ends: only the files matter, and who holds the lock may never run again."""
        if self._process == os.getpid():  # a forked child has it from its parent
            shutil.rmtree(self._root, ignore_errors=True)


def in_memory(byte_size: int) -> PrivateDirectory:
    """A folder whose files are kept in memory, if there is room for so many bytes; else one on disk.

    With the reason in the log, since what is written there may be secret.
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
        except FileNotFoundError:  # another process took it for one that was left behind
            continue
        try:
            if _is_ours(root, descriptor):
                return root, descriptor
        except OSError as error:
            # Nobody else can lock it either, so nobody takes it for a left one.
            logger.debug("folders in '%s' cannot be locked: %s", where, error)
            return root, descriptor
        os.close(descriptor)


def _is_ours(root: Path, descriptor: int) -> bool:
    """Lock the folder; whether nobody else has and it is still there then.

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
    """Remove the folders of processes that were killed, once for each place."""
    with _lock:
        if where in _swept:
            return
        _swept.add(where)
    if fcntl is None:  # nobody knows whose they are
        return
    for root in where.glob(f"{PREFIX}*"):
        try:
            descriptor = os.open(root, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC)
        except OSError:  # gone meanwhile, no folder, or of another user
            continue
        try:
            if os.fstat(descriptor).st_uid == os.getuid() and _is_ours(root, descriptor):
                shutil.rmtree(root, ignore_errors=True)
        except OSError:  # without locks nobody knows whether it is in use: it stays
            pass
        os.close(descriptor)


def leave_nothing() -> None:
    """Remove the folders of this process. For one that ends without atexit; signal handlers may call it."""
    for each in list(_kept.values()):
        each.leave()


atexit.register(leave_nothing)
