"""Memory that the frontends take from the operating system: in a form of Linux, and in one of POSIX systems.

core.system.platform says which form this process uses.
"""

from __future__ import annotations

import os

from core.system import platform


def unnamed_memory(label: str, byte_size: int) -> int:
    """Return the descriptor of new memory that no path leads to. The caller closes it. Raises OSError.

    Portable: a temporary file without a name, so pages may be written to a disk.
    """
    if platform.PORTABLE:
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
    if platform.PORTABLE:
        import _posixshmem  # type: ignore[import-not-found]

        found: int = _posixshmem.shm_open(f"/{name}", os.O_RDWR)
        return found
    # O_NOFOLLOW: a link could name any file of the server. O_NONBLOCK: opening a pipe could block.
    return os.open(platform.MEMORY / name, os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC)
