"""Region: a mapped part of one shared memory object.

key, or descriptor ─► [Region] ─► views for requests.  A view keeps the mapping: it ends when the region and
the last view are freed.
"""

from __future__ import annotations

import mmap
import os
import stat
from typing import NamedTuple

from core import dtypes
from core.dtypes import DataType
from core.errors import CoreError, internal, invalid, unsupported
from core.tensor import Buffer
from frontends.shared import system_memory
from frontends.shared.native.mapping import Mapping

try:
    import fcntl
except ImportError:  # Windows: no client can lend memory
    fcntl = None  # type: ignore[assignment]

RESERVED_PREFIX = "triton_python_backend_shm_region_"
SYSTEM, CUDA, LENT = "system", "cuda", "lent"  # kinds

_SEMAPHORE = "sem."  # prefix of the files of sem_open, in the same folder
_NO_FILE = -1
_LARGEST = 2**64 - 1  # largest size in the protocol
_LONGEST_KEY = 255  # bytes, of a file name
# F_GET_SEALS and F_SEAL_SHRINK; fcntl of Python 3.10 has no names for them.
_GET_SEALS, _SEAL_SHRINK = 1034, 2


class RegionStatus(NamedTuple):
    """The status of a region for clients; sizes are in bytes."""

    name: str
    key: str
    offset: int
    byte_size: int


class Region:
    """A mapped region. Create it on the loop thread; `view`, `read` and the views are thread-safe.

    kind     "system", or "lent" if a client sent a descriptor; only that client knows the region's name
    status   as registered; the key of a lent region is ""
    """

    __slots__ = ("_file", "_map", "kind", "status")

    def __init__(self, status: RegionStatus, file: int, *, sealed: bool = False):
        """Map a part of `file`, which the caller closes. Raises OSError if the mapping fails.

        sealed   whether the file is sealed against shrinking. If not, `view` checks its size at each call
        """
        self.kind = LENT if sealed else SYSTEM
        self.status = status
        # It unmaps itself when this object and all views are freed, in any order.
        self._map = Mapping(file, status.offset, status.byte_size)
        self._file = _NO_FILE if sealed else os.dup(file)

    def __del__(self) -> None:
        if getattr(self, "_file", _NO_FILE) != _NO_FILE:
            os.close(self._file)

    def view(self, offset: int, byte_size: int) -> memoryview:
        """Return `byte_size` writable bytes, from byte `offset` on.

        Raises CoreError(INVALID) for bytes outside of the region, and if its memory is lost.
        """
        name = self.status.name
        check_place(name, self.status.byte_size, offset, byte_size)
        if self._map.lost:
            raise gone(name)
        # The object may have become smaller: refuse the request instead of reading zeros.
        if self._file != _NO_FILE:
            left = os.fstat(self._file).st_size - self.status.offset
            if offset + byte_size > left:
                raise invalid(f"Invalid offset + byte size for shared memory region: '{name}'")
        return memoryview(self._map)[offset : offset + byte_size]

    def read(self, offset: int, byte_size: int, dtype: DataType | None) -> Buffer:
        """Return the bytes of an input of type `dtype`: a copy for BYTES, a read-only view for other types.

        The client can change the bytes of a view while the model runs. Raises what `view` raises.
        """
        found = self.view(offset, byte_size).toreadonly()
        if dtype is not dtypes.BYTES:
            return found
        # The lengths in BYTES are checked once and must not change. Elements are copied in any case.
        copied = bytes(found)
        if self._map.lost:
            raise gone(self.status.name)
        return copied


def check_place(name: str, size: int, offset: int, byte_size: int) -> None:
    """Raise CoreError(INVALID) unless `byte_size` bytes from `offset` on lie within a region of `size` bytes.

    The offset itself must be within the region, even if `byte_size` is 0.

    name   of the region, for errors
    """
    if not 0 <= offset < size:
        raise invalid(f"Invalid offset for shared memory region: '{name}'")
    if offset and byte_size > _LARGEST - offset:
        raise invalid(
            f"Integer overflow detected: byte_size ({byte_size}) + offset ({offset}) exceeds maximum value "
            f"({_LARGEST}) for region '{name}'"
        )
    if not 0 <= byte_size <= size - offset:
        raise invalid(f"Invalid offset + byte size for shared memory region: '{name}'")


def gone(name: str) -> CoreError:
    """Return the error for a region whose memory is lost."""
    return invalid(
        f"the memory of shared memory region '{name}' is gone: its object was made smaller, or the system "
        "had no memory left for it; unregister it and register it again"
    )


def open_region(status: RegionStatus) -> Region:
    """Map the region that `status` describes. Never blocks.

    Raises CoreError(INVALID) for an invalid key, offset or size, CoreError(INTERNAL) if the object cannot be
    opened or mapped. No error shows the key, which may be secret from the reader.
    """
    name, offset, byte_size = status.name, status.offset, status.byte_size
    file = _open(_file_name(status), name)
    try:
        found = os.fstat(file)
        if stat.S_IFMT(found.st_mode) not in (stat.S_IFREG, 0):  # 0: an object of macOS
            raise _unopened(name)
        if byte_size <= 0 or offset < 0 or offset + byte_size > found.st_size:
            raise invalid(f"failed to register shared memory region '{name}': invalid args")
        if offset % mmap.ALLOCATIONGRANULARITY:
            raise invalid(
                f"failed to register shared memory region '{name}': its offset is {offset} bytes, it "
                f"must be a multiple of {mmap.ALLOCATIONGRANULARITY}"
            )
        return Region(status, file)
    except (OSError, OverflowError):
        raise internal(f"Unable to map shared memory region: '{name}'") from None
    finally:
        os.close(file)


def sealed_region(name: str, file: int, byte_size: int) -> Region:
    """Map the first `byte_size` bytes of the memory of a client's descriptor. Never blocks.

    file   descriptor, which the caller closes
    Raises CoreError(INVALID) if the memory is not sealed against shrinking, or if `byte_size` is not from 1
    to its size, CoreError(INTERNAL) if the mapping fails, CoreError(UNSUPPORTED) on Windows.
    """
    if fcntl is None:
        raise unsupported("memory of a descriptor can be registered on Linux only")
    try:
        seals = fcntl.fcntl(file, _GET_SEALS)
    except OSError:
        raise invalid(
            "the descriptor is of no memory that can be sealed: memfd_create makes such memory"
        ) from None
    if not seals & _SEAL_SHRINK:
        raise invalid(
            "the memory is not sealed: F_ADD_SEALS with F_SEAL_SHRINK keeps it from shrinking"
        )
    found = os.fstat(file).st_size
    if not 0 < byte_size <= found:
        raise invalid(f"{byte_size} bytes of memory of {found} bytes cannot be registered")
    try:
        return Region(RegionStatus(name, "", 0, byte_size), file, sealed=True)
    except (OSError, OverflowError) as error:
        raise internal(f"memory of {byte_size} bytes cannot be mapped: {error}") from None


def _file_name(status: RegionStatus) -> str:
    """Return the key without its leading slashes, which is the name of a file.

    Raises CoreError(INVALID) for a key that is no name of a file, is too long, or begins with a reserved
    word.
    """
    found = status.key.lstrip("/")
    if found.startswith(RESERVED_PREFIX):
        raise invalid(
            f"cannot register shared memory region '{status.name}' as its key contains the reserved "
            f"prefix '{RESERVED_PREFIX}'"
        )
    if (
        found in ("", ".", "..")
        or found.startswith(_SEMAPHORE)
        or "/" in found
        or "\0" in found
        or len(os.fsencode(found)) > _LONGEST_KEY
    ):
        raise invalid(f"cannot register shared memory region '{status.name}' - invalid shm key")
    return found


def _open(file_name: str, region: str) -> int:
    try:
        return system_memory.open_shared_memory(file_name)
    except OSError:
        raise _unopened(region) from None


def _unopened(region: str) -> CoreError:
    return internal(f"Unable to open shared memory region: '{region}'")
