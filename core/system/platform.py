"""What the server asks of the operating system: in a form of Linux, and in one that POSIX systems share.

CORE_PORTABLE=1 selects the second form on Linux too, so that it is tested there. docs/operate/portable.md
lists what that form lacks. The compiled modules in core/native have their own two forms in
core/native/system.
"""

from __future__ import annotations

import errno
import os
import sys
from collections.abc import Iterable
from pathlib import Path

PORTABLE = sys.platform != "linux" or os.environ.get("CORE_PORTABLE", "0") not in ("", "0")

# Files of Linux; the portable form finds none of them.
_ROOT = Path("/nonexistent" if PORTABLE else "/")
PROC, SYS, MEMORY = _ROOT / "proc", _ROOT / "sys", _ROOT / "dev/shm"


def cores() -> frozenset[int]:
    """Return the cores that this process may use; portable: all of the machine."""
    if PORTABLE:
        return frozenset(range(os.cpu_count() or 1))
    return frozenset(os.sched_getaffinity(0))


def bind(thread: int, cores: Iterable[int]) -> None:
    """Bind a thread (its native id; 0: the caller) to cores. Raises OSError if it fails; portable: always."""
    if PORTABLE:
        raise OSError(errno.ENOTSUP, "only Linux binds threads to cores")
    os.sched_setaffinity(thread, cores)


def unnamed_memory(label: str, byte_size: int) -> int:
    """Return the descriptor of new memory that no path leads to. The caller closes it. Raises OSError.

    Portable: a temporary file without a name, so pages may be written to a disk.
    """
    if PORTABLE:
        import tempfile  # only here: start-up does not need it

        file, path = tempfile.mkstemp(prefix=f"{label}-")
        os.unlink(path)
    else:
        file = os.memfd_create(label, os.MFD_CLOEXEC)
    os.ftruncate(file, byte_size)
    return file


def open_shared_memory(name: str) -> int:
    """Open an object of shm_open(3) for reading and writing; return its descriptor. Never blocks.

    name   without the slash
    Raises OSError.
    """
    if PORTABLE:
        import _posixshmem  # type: ignore[import-not-found]

        found: int = _posixshmem.shm_open(f"/{name}", os.O_RDWR)
        return found
    # O_NOFOLLOW: a link could name any file of the server. O_NONBLOCK: opening a pipe could block.
    return os.open(MEMORY / name, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
