"""SharedMemoryRegions: the regions that clients have registered, of every kind, by name.

register ─► [regions] ─► view, read ─► tensors of requests.  A client writes its inputs into a region and
reads its outputs there; requests say only where. Off unless --allow-client-shm=true, but for what comes
over a socket for it.
"""

from __future__ import annotations

import os
import secrets
import sys
from typing import Any, Protocol

from core.dtypes import DataType
from core.errors import CoreError, Kind, invalid, not_found, unavailable, unsupported
from core.memory.region import LENT, SYSTEM, RegionStatus, open_region, sealed_region
from core.tensor import Buffer

DISABLED = (
    "Client shared memory is disabled. Start the server with '--allow-client-shm=true' to enable."
)
_CALLED = {"system": "system shared memory", "cuda": "CUDA shared memory"}


class Registered(Protocol):
    """What stands behind a name.

    kind   "system", "cuda", or "lent" for one that its owner alone knows
    """

    kind: str

    def view(self, offset: int, byte_size: int) -> Any:
        """Where an output goes: a writable memoryview, or a DevicePlace."""

    def read(self, offset: int, byte_size: int, dtype: DataType | None) -> Any:
        """Where an input is: a buffer, or a DevicePlace."""


class SharedMemoryRegions:
    """Regions by name. Loop thread, but for `view` and `read`: any thread may call these. Invariants:

    1. A registered region lies within its object, as large as that was then.
    2. A view stays valid whatever happens to its region: unregistering forgets the name at once, the
       mapping goes with the last view.
    3. Names are those of all kinds together. Clients see and unregister those of the kind that they name;
       nobody sees what is lent.

    allowed   whether clients may register memory by its name; if not, there is never such a region
    most      how many there may be at a time; 0 for half of the files that the process may open
    """

    def __init__(self, allowed: bool, most: int = 0):
        self._allowed = allowed
        self._most = most
        self._regions: dict[str, Registered] = {}

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
        if not _is_text(key):
            raise invalid("name and key of a shared memory region must be UTF-8")
        self.check_free(name)
        self._regions[name] = open_region(RegionStatus(name, key, offset, byte_size))

    def lend(self, name: str, file: int, byte_size: int) -> None:
        """Map memory that a client has sent, under a name of `new_name`; the caller closes `file`.

        Allowed without --allow-client-shm: who opens a socket for it has said so.
        Raises what `sealed_region` raises, and CoreError(UNAVAILABLE) when there are too many.
        """
        self.check_free(name)
        self._regions[name] = sealed_region(name, file, byte_size)

    def give_back(self, name: str) -> None:
        """Forget what was lent; an unknown one is no error. Requests that use it finish first."""
        self.remove(LENT, name)

    def unregister(self, name: str = "") -> None:
        """Forget a region of system memory, or all without a name; an unknown one is no error.

        Requests that use it finish first. Raises CoreError(UNSUPPORTED) when not allowed.
        """
        self.check_allowed()
        self.remove(SYSTEM, name)

    def status(self, name: str = "") -> list[RegionStatus]:
        """One region of system memory, or all without a name. Raises CoreError(NOT_FOUND) for an
        unknown name."""
        return [region.status for region in self.of_kind(SYSTEM, name)]

    def view(self, name: str, offset: int, byte_size: int) -> Any:
        """`byte_size` writable bytes from byte `offset` of the region on; they outlive it.

        A memoryview, or of memory of a GPU a DevicePlace. Raises CoreError: NOT_FOUND for an unknown
        name, INVALID for what is not within the region.
        """
        if (found := self._regions.get(name)) is None:
            raise not_found(f"Unable to find shared memory region: '{name}'")
        return found.view(offset, byte_size)

    def read(self, name: str, offset: int, byte_size: int, dtype: DataType | None) -> Buffer:
        """The bytes of an input, read-only; raises what `view` raises.

        Of memory of a GPU a DevicePlace, which makes its tensor itself; BYTES are copied to the host.
        The client can write to them while the model runs.
        """
        if (found := self._regions.get(name)) is None:
            raise not_found(f"Unable to find shared memory region: '{name}'")
        return found.read(offset, byte_size, dtype)

    # for all kinds ------------------------------------------------------------

    def check_allowed(self) -> None:
        """Raise CoreError(UNSUPPORTED) unless clients may register memory."""
        if not self._allowed:
            raise unsupported(DISABLED)

    def check_free(self, name: str) -> None:
        """Raise CoreError unless one more region may be registered, under this name."""
        if not _is_text(name):
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

    def add(self, name: str, region: Registered) -> None:
        """A region of another kind. Raises what `check_free` raises."""
        self.check_free(name)
        self._regions[name] = region

    def remove(self, kind: str, name: str = "") -> None:
        """Forget a region, or all of its kind without a name."""
        for each in [name] if name else list(self._regions):
            if (found := self._regions.get(each)) is not None and found.kind == kind:
                del self._regions[each]

    def of_kind(self, kind: str, name: str = "") -> list[Any]:
        """One region, or all of its kind without a name. Raises CoreError(NOT_FOUND) for an unknown
        name, and for one of another kind."""
        if not name:
            return [region for region in self._regions.values() if region.kind == kind]
        found = self._regions.get(name)
        if found is None or found.kind == LENT:
            raise not_found(
                f"Unable to find {_CALLED[kind].replace('CUDA', 'cuda')} region: '{name}'"
            )
        if found.kind != kind:
            raise not_found(
                f"The region named '{name}' is registered as {_CALLED[found.kind]}, not {_CALLED[kind]}"
            )
        return [found]

    def close(self) -> None:
        """The server ends: forget all regions."""
        self._regions.clear()


def new_name() -> str:
    """A name that nobody can guess: knowing it is what allows to use the memory."""
    return f"lent-{secrets.token_hex(16)}"


def _most_regions() -> int:
    """Half of the files that the process may open: a region holds one, connections need the rest."""
    files = os.sysconf("SC_OPEN_MAX")
    return files // 2 if files > 0 else sys.maxsize


def _is_text(value: str) -> bool:
    """Whether every answer can hold it: a path over HTTP may have any bytes in it."""
    try:
        value.encode()
    except UnicodeEncodeError:
        return False
    return True
