"""SharedMemoryRegions: the registered regions of clients, of every kind, by name.

register ─► [regions] ─► view, read ─► tensors of requests.  A client writes its inputs into a region and
reads its outputs from it; requests contain only the location. Registration by name needs --allow-client-shm.
"""

from __future__ import annotations

import os
import sys
from typing import Any, Protocol

from core.dtypes import DataType
from core.errors import CoreError, Kind, invalid, not_found, unavailable, unsupported
from core.tensor import Buffer
from frontends.shared.memory.region import LENT, SYSTEM, RegionStatus, open_region, sealed_region

_CALLED = {"system": "system shared memory", "cuda": "CUDA shared memory"}


class Registered(Protocol):
    """A region of any kind.

    kind     "system", "cuda", or "lent": only its client knows its name
    status   the status for clients
    """

    kind: str
    status: Any

    def view(self, offset: int, byte_size: int) -> Any:
        """Return the memory for an output: a writable memoryview, or a CudaPlace."""

    def read(self, offset: int, byte_size: int, dtype: DataType | None) -> Any:
        """Return the memory of an input: a buffer, or a CudaPlace."""


class SharedMemoryRegions:
    """Regions by name. `view` and `read` are thread-safe; call the rest from the event loop only. Invariants:

    1. A region lies within its object as the object was at the registration.
    2. Unregistering removes the name at once. Views stay valid; the memory is unmapped after the last view.
    3. All kinds share one set of names. Clients list and unregister regions of one kind at a time, but do not
       list lent regions.

    allowed   whether clients may register memory by its name (--allow-client-shm)
    most      largest number of regions at a time; 0 for half of the files that the process may open
    """

    def __init__(self, allowed: bool, most: int = 0):
        self._allowed = allowed
        self._most = most
        self._regions: dict[str, Registered] = {}

    def register(self, name: str, key: str, offset: int, byte_size: int) -> None:
        """Map `byte_size` bytes of the object `key` from byte `offset` on, and register them as `name`.

        key      name of the object, as shm_open takes it: "/" and a name
        offset   in bytes, a multiple of the page size
        Raises CoreError: UNSUPPORTED if clients may not register memory, ALREADY_EXISTS for a name in use,
        UNAVAILABLE for too many regions, INVALID for an empty name and for a name or key that is no UTF-8,
        and what `open_region` raises.
        """
        self.check_allowed()
        if not name:
            raise invalid("'region name' is necessary to register system shared memory region")
        if not _is_text(key):
            raise invalid("name and key of a shared memory region must be UTF-8")
        self.check_free(name)
        self._regions[name] = open_region(RegionStatus(name, key, offset, byte_size))

    def lend(self, name: str, file: int, byte_size: int) -> None:
        """Map `byte_size` bytes of the memory of a descriptor, and register them as `name`.

        name   random text, which only the client of the memory knows
        file   descriptor, which the caller closes
        The method needs no --allow-client-shm, because --shared-memory-socket permits to lend memory.
        Raises what `check_free` and `sealed_region` raise.
        """
        self.check_free(name)
        self._regions[name] = sealed_region(name, file, byte_size)

    def unregister(self, name: str = "", kind: str = SYSTEM) -> None:
        """Forget the region `name` if it is of this kind, or all regions of this kind if `name` is empty.

        An unknown name is no error. Views of a forgotten region stay valid. Raises CoreError(UNSUPPORTED)
        if clients may not register memory and the kind is not "lent".
        """
        if kind != LENT:
            self.check_allowed()
        for each in [name] if name else list(self._regions):
            if (found := self._regions.get(each)) is not None and found.kind == kind:
                del self._regions[each]

    def status(self, name: str = "", kind: str = SYSTEM) -> list[Any]:
        """Return the status of the region `name`, or of all regions of this kind if `name` is empty.

        Raises CoreError(NOT_FOUND) for an unknown name, and for a region of another kind.
        """
        if not name:
            return [region.status for region in self._regions.values() if region.kind == kind]
        found = self._regions.get(name)
        if found is None or found.kind == LENT:
            raise not_found(
                f"Unable to find {_CALLED[kind].replace('CUDA', 'cuda')} region: '{name}'"
            )
        if found.kind != kind:
            raise not_found(
                f"The region named '{name}' is registered as {_CALLED[found.kind]}, not {_CALLED[kind]}"
            )
        return [found.status]

    def view(self, name: str, offset: int, byte_size: int) -> Any:
        """Return `byte_size` writable bytes of a region, from byte `offset` on, to receive an output.

        They are a memoryview, or for GPU memory a CudaPlace, and stay valid after the region is unregistered.
        Raises CoreError: NOT_FOUND for an unknown name, INVALID for bytes outside of the region.
        """
        if (found := self._regions.get(name)) is None:
            raise not_found(f"Unable to find shared memory region: '{name}'")
        return found.view(offset, byte_size)

    def read(self, name: str, offset: int, byte_size: int, dtype: DataType | None) -> Buffer:
        """Return `byte_size` bytes of a region, from byte `offset` on, that hold an input of type `dtype`.

        System and lent memory give a buffer. GPU memory gives a CudaPlace, whose method `tensor` creates the
        input, but for the datatype BYTES a copy in host memory. Raises what `view` raises.
        """
        if (found := self._regions.get(name)) is None:
            raise not_found(f"Unable to find shared memory region: '{name}'")
        return found.read(offset, byte_size, dtype)

    def check_allowed(self) -> None:
        """Raise CoreError(UNSUPPORTED) unless clients may register memory."""
        if not self._allowed:
            raise unsupported(
                "Client shared memory is disabled. Start the server with '--allow-client-shm=true' to enable."
            )

    def check_free(self, name: str) -> None:
        """Raise CoreError if `name` cannot be registered.

        INVALID: it is no UTF-8. ALREADY_EXISTS: it is in use. UNAVAILABLE: there are too many regions.
        """
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
        """Register a region that the caller has opened. Raises what `check_free` raises."""
        self.check_free(name)
        self._regions[name] = region

    def close(self) -> None:
        """Forget all regions."""
        self._regions.clear()


def _most_regions() -> int:
    """Return half of the limit of open files, sys.maxsize if there is no limit.

    Each region holds one file, and connections need the rest.
    """
    files = os.sysconf("SC_OPEN_MAX")
    return files // 2 if files > 0 else sys.maxsize


def _is_text(value: str) -> bool:
    """Return whether `value` can be encoded as UTF-8. The path of an HTTP request may contain other bytes."""
    return not any("\ud800" <= each <= "\udfff" for each in value)
