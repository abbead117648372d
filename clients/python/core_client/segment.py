"""Segment: memory of this process that a server can also map, by a name or by a descriptor."""

from __future__ import annotations

import errno
import mmap
import os
import secrets
import sys

import numpy as np

try:
    import fcntl
except ImportError:  # Windows, which has no unnamed memory either
    fcntl = None  # type: ignore[assignment]

# Elsewhere objects of shared memory are no files. CORE_PORTABLE=1 tries that on Linux.
_PORTABLE = sys.platform != "linux" or os.environ.get("CORE_PORTABLE", "0") not in ("", "0")
_FOLDER = "/dev/shm"
# Of <linux/fcntl.h>; Python 3.10 has no names for them.
_ADD_SEALS, _SEAL, _SHRINK, _GROW = 1033, 1, 2, 4


class Segment:
    """Mapped memory. All of it is allocated, so that no later access fails.

    name        as requests name the region
    key         of its object, "" without one
    byte_size   size of the memory
    file        descriptor, which `close` closes; -1 from then on
    address     of the first byte, as long as the segment lives
    """

    def __init__(self, name: str, key: str, file: int, byte_size: int):
        self.name = name
        self.key = key
        self.byte_size = byte_size
        self.file = file
        self._map = mmap.mmap(file, byte_size)
        self.address: int = np.frombuffer(self._map, np.uint8).ctypes.data

    def unlink(self) -> None:
        """Remove the name. Processes that have mapped the memory keep it; no other process finds it."""
        if self.key:
            try:
                _unlink(self.key)
            except FileNotFoundError:
                pass

    def close(self) -> None:
        """Remove the name and close the descriptor. The memory is freed with the last array over it."""
        self.unlink()
        file, self.file = self.file, -1
        if file != -1:
            os.close(file)


def named_segment(byte_size: int, mode: int) -> Segment:
    """Make memory under a new name, which is a file in /dev/shm on Linux.

    mode   permissions of its file: the server must be able to open it
    Raises OSError; ENOSPC means that there is not enough memory.
    """
    name = f"core-pool-{os.getpid()}-{secrets.token_hex(7)}"  # macOS allows 31 bytes with the slash
    key = f"/{name}"
    file = _create(key, mode if _PORTABLE else 0o600)
    try:
        if not _PORTABLE:  # only files can change their mode; others have it less the umask
            os.fchmod(file, mode)
        _allocate(file, byte_size)
        return Segment(name, key, file, byte_size)
    except BaseException:
        os.close(file)
        _unlink(key)
        raise


def _create(key: str, mode: int) -> int:
    flags = os.O_RDWR | os.O_CREAT | os.O_EXCL
    if _PORTABLE:
        import _posixshmem

        found: int = _posixshmem.shm_open(key, flags, mode=mode)
        return found
    return os.open(f"{_FOLDER}{key}", flags | os.O_CLOEXEC, mode)


def _unlink(key: str) -> None:
    if _PORTABLE:
        import _posixshmem

        _posixshmem.shm_unlink(key)
    else:
        os.unlink(f"{_FOLDER}{key}")


def _allocate(file: int, byte_size: int) -> None:
    """Set the size of memory and reserve its pages; portable: without the reservation."""
    if _PORTABLE:
        os.ftruncate(file, byte_size)
    else:
        os.posix_fallocate(file, 0, byte_size)


def sealed_segment(byte_size: int) -> Segment:
    """Make unnamed memory of a fixed size. Raises OSError; ENOSYS means that this is not Linux."""
    if _PORTABLE or fcntl is None:
        raise OSError(errno.ENOSYS, "only Linux has memory without a name")
    file = os.memfd_create("core-pool", os.MFD_CLOEXEC | os.MFD_ALLOW_SEALING)
    try:
        _allocate(file, byte_size)
        fcntl.fcntl(file, _ADD_SEALS, _SHRINK | _GROW | _SEAL)
        return Segment("", "", file, byte_size)
    except BaseException:
        os.close(file)
        raise
