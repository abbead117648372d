"""CudaRegions: the same door for memory of GPUs, behind which there is none."""

from __future__ import annotations

from typing import NoReturn

from core.errors import invalid, not_found
from core.memory.regions import SharedMemoryRegions


class CudaRegions:
    """Memory of GPUs cannot be registered, so there is never a region. Loop thread only.

    system   decides whether clients may share memory at all
    """

    def __init__(self, system: SharedMemoryRegions):
        self._system = system

    def register(self, name: str) -> NoReturn:
        """Raises CoreError: UNSUPPORTED when clients may share nothing, else INVALID."""
        self._system.check_allowed()
        raise invalid(f"failed to register CUDA shared memory region: '{name}', GPUs not supported")

    def unregister(self, name: str = "") -> None:
        """There is nothing to forget. Raises CoreError(UNSUPPORTED) when not allowed."""
        self._system.check_allowed()

    def status(self, name: str = "") -> list[NoReturn]:
        """Nothing. Raises CoreError(NOT_FOUND) for a name."""
        if name:
            raise not_found(f"Unable to find cuda shared memory region: '{name}'")
        return []
