"""Region: a part of one shared memory object, mapped.

key ─► [open_region] ─► Region ─► views for requests.  Whoever holds a view keeps the mapping: it goes
when the region was dropped and the last view of it too.
"""

from __future__ import annotations

import mmap
import os
import stat
from typing import NamedTuple

from core.errors import CoreError, internal, invalid

RESERVED_PREFIX = "triton_python_backend_shm_region_"

_FOLDER = "/dev/shm/"  # where shm_open keeps its objects on Linux
_LONGEST_KEY = 255  # bytes, of a file name


class RegionStatus(NamedTuple):
    """What clients are told about a region; sizes in bytes."""

    name: str
    key: str
    offset: int
    byte_size: int


class Region:
    """A mapped region. Loop thread; its views go anywhere.

    status    as it was registered
    """

    __slots__ = ("_map", "status")

    def __init__(self, status: RegionStatus, mapped: mmap.mmap):
        self.status = status
        # Never closed: it unmaps itself when this object and all views are gone, in any order.
        self._map = mapped

    def view(self, offset: int, byte_size: int) -> memoryview:
        """`byte_size` writable bytes from byte `offset` of the region on. Raises CoreError(INVALID)."""
        name, size = self.status.name, self.status.byte_size
        if not 0 <= offset < size:
            raise invalid(f"Invalid offset for shared memory region: '{name}'")
        # The object may have become smaller since; bytes behind its end would kill the process.
        if not 0 <= byte_size <= min(size, self._map.size() - self.status.offset) - offset:
            raise invalid(f"Invalid offset + byte size for shared memory region: '{name}'")
        return memoryview(self._map)[offset : offset + byte_size]


def open_region(status: RegionStatus) -> Region:
    """Map the region that `status` describes. Never blocks.

    Raises CoreError(INVALID) for a key or a place that cannot be, CoreError(INTERNAL) when the system
    refuses. No text shows the key: whoever sees an error is not always who may know it.
    """
    name, offset, byte_size = status.name, status.offset, status.byte_size
    file = _open(_file_name(status), name)
    try:
        found = os.fstat(file)
        if not stat.S_ISREG(found.st_mode):
            raise _unopened(name)
        if byte_size <= 0 or offset < 0 or offset + byte_size > found.st_size:
            raise invalid(f"failed to register shared memory region '{name}': invalid args")
        if offset % mmap.ALLOCATIONGRANULARITY:
            raise invalid(
                f"failed to register shared memory region '{name}': its offset is {offset} bytes, it "
                f"must be a multiple of {mmap.ALLOCATIONGRANULARITY}"
            )
        mapped = mmap.mmap(
            file, byte_size, mmap.MAP_SHARED, mmap.PROT_READ | mmap.PROT_WRITE, offset=offset
        )
    except (OSError, ValueError, OverflowError):  # ValueError: it has become smaller just now
        raise internal(f"Unable to map shared memory region: '{name}'") from None
    finally:
        os.close(file)
    return Region(status, mapped)


def _file_name(status: RegionStatus) -> str:
    """The key without its leading slashes. Raises CoreError(INVALID) for one that names no object."""
    found = status.key.lstrip("/")
    if found.startswith(RESERVED_PREFIX):
        raise invalid(
            f"cannot register shared memory region '{status.name}' as its key contains the reserved "
            f"prefix '{RESERVED_PREFIX}'"
        )
    if (
        found in ("", ".", "..")
        or "/" in found
        or "\0" in found
        or len(os.fsencode(found)) > _LONGEST_KEY
    ):
        raise invalid(f"cannot register shared memory region '{status.name}' - invalid shm key")
    return found


def _open(file_name: str, region: str) -> int:
    # O_NOFOLLOW: a link would lead to any file of the server. O_NONBLOCK: a pipe would wait.
    flags = os.O_RDWR | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        return os.open(_FOLDER + file_name, flags)
    except OSError:
        raise _unopened(region) from None


def _unopened(region: str) -> CoreError:
    return internal(f"Unable to open shared memory region: '{region}'")
