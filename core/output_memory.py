"""DevicePlace: memory of a client on a device, for an output.

frontend ─► RequestedOutput.memory: a memoryview, or a [DevicePlace] ─► core/pipeline/answers/placement.py
"""

from __future__ import annotations

from abc import ABC, abstractmethod

from core.errors import CoreError, internal
from core.tensor import Tensor


class DevicePlace(ABC):
    """A part of a client's memory on a device. It keeps the memory open. Thread-safe.

    nbytes   size of the part in bytes
    """

    nbytes: int

    @abstractmethod
    def fill(self, tensor: Tensor) -> None:
        """Copy the wire bytes of an output to the beginning of the part; its other bytes stay. Blocks.

        Raise CoreError(INTERNAL) if the place is too small.
        """


def too_small(output: str, found: int, needed: int) -> CoreError:
    """Return the error of an output that is larger than the memory for it; sizes in bytes."""
    return internal(
        f"shared memory size specified with the request for output '{output}' ({found} bytes) should be at "
        f"least {needed} bytes to hold the results"
    )
