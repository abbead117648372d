"""SharedMemoryRegions: the regions of system shared memory that clients have registered.

register ─► [regions] ─► view ─► tensors of requests.  A client writes its inputs into a region and
reads its outputs there; requests say only where. Off unless --allow-client-shm=true.
"""

from __future__ import annotations

import os
import sys

from core import dtypes
from core.dtypes import DataType
from core.errors import CoreError, Kind, invalid, not_found, unavailable, unsupported
from core.memory.region import Region, RegionStatus, open_region
from core.tensor import Buffer

DISABLED = (
    "Client shared memory is disabled. Start the server with '--allow-client-shm=true' to enable."
)


class SharedMemoryRegions:
    """Regions by name. Loop thread only. Invariants:

    1. A registered region lies within its object, as large as that was then.
    2. A view stays valid whatever happens to its region: unregistering forgets the name at once, the
       mapping goes with the last view.

    allowed   whether clients may register; if not, there is never a region
    most      how many there may be at a time; 0 for half of the files that the process may open
    """

    def __init__(self, allowed: bool, most: int = 0):
        self._allowed = allowed
        self._most = most
        self._regions: dict[str, Region] = {}

    def register(self, name: str, key: str, offset: int, byte_size: int) -> None:
        """Map `byte_size` bytes of the object `key` from byte `offset` on, under `name`.

        key      as shm_open takes it: "/" and a name
        offset   whole pages
        Raises CoreError: UNSUPPORTED when not allowed, ALREADY_EXISTS for a name that is taken,
        INVALID or INTERNAL as `open_region` says, UNAVAILABLE when there are too many.
        """
        self.check_allowed()
        if not name:
            raise invalid("'region name' is necessary to register system shared memory region")
        if not (_is_text(name) and _is_text(key)):
            raise invalid("name and key of a shared memory region must be UTF-8")
        if name in self._regions:
            raise CoreError(
                Kind.ALREADY_EXISTS, f"shared memory region '{name}' already in manager"
            )
        most = self._most or _most_regions()
        if len(self._regions) >= most:
            raise unavailable(
                f"failed to register shared memory region '{name}': {most} regions are the most; "
                "unregister some"
            )
        self._regions[name] = open_region(RegionStatus(name, key, offset, byte_size))

    def unregister(self, name: str = "") -> None:
        """Forget a region, or all without a name; an unknown one is no error.

        Requests that use it finish first. Raises CoreError(UNSUPPORTED) when not allowed.
        """
        self.check_allowed()
        if name:
            self._regions.pop(name, None)
        else:
            self._regions.clear()

    def status(self, name: str = "") -> list[RegionStatus]:
        """One region, or all without a name. Raises CoreError(NOT_FOUND) for an unknown name."""
        if not name:
            return [region.status for region in self._regions.values()]
        if (found := self._regions.get(name)) is None:
            raise not_found(f"Unable to find system shared memory region: '{name}'")
        return [found.status]

    def view(self, name: str, offset: int, byte_size: int) -> memoryview:
        """`byte_size` writable bytes from byte `offset` of the region on; they outlive it.

        Raises CoreError: NOT_FOUND for an unknown name, INVALID for what is not within the region.
        """
        if (found := self._regions.get(name)) is None:
            raise not_found(f"Unable to find shared memory region: '{name}'")
        return found.view(offset, byte_size)

    def read(self, name: str, offset: int, byte_size: int, dtype: DataType | None) -> Buffer:
        """The bytes of an input, read-only; raises what `view` raises.

        The client can write to them while the model runs.
        """
        found = self.view(name, offset, byte_size).toreadonly()
        # The lengths in BYTES are checked once and must be the same later. Elements are copied anyway.
        return bytes(found) if dtype is dtypes.BYTES else found

    def check_allowed(self) -> None:
        """Raise CoreError(UNSUPPORTED) unless clients may register memory."""
        if not self._allowed:
            raise unsupported(DISABLED)

    def close(self) -> None:
        """The server ends: forget all regions."""
        self._regions.clear()


def _most_regions() -> int:
    """Half of the files that the process may open: each region holds one, connections need the rest."""
    files = os.sysconf("SC_OPEN_MAX")
    return files // 2 if files > 0 else sys.maxsize


def _is_text(value: str) -> bool:
    """Whether every answer can hold it: a path over HTTP may have any bytes in it."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True
