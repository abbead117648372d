"""A simulated GPU runtime for tests on machines without a GPU. Memory of other processes is a numpy array.

A test makes memory like a client, gives its handle to the server, and checks that the memory is opened and
closed, and how often bytes are copied in each direction.
"""

from __future__ import annotations

import ctypes
import os

import numpy as np

from core_testing.fake_device import FakeDevice


class FakeRuntime:
    """A stand-in for frontends/shared/memory/device_runtime.py, of one FakeDevice.

    device   its `copies` counts copies to the host
    opened   open addresses; an address that is opened twice is there twice
    filled   number of copies from the host
    moved    number of copies from device memory to device memory
    """

    def __init__(self, device: FakeDevice):
        self.device = device
        self.opened: list[int] = []
        self.filled = 0
        self.moved = 0
        self._shared: dict[bytes, np.ndarray] = {}

    def share(self, content: np.ndarray) -> tuple[bytes, np.ndarray]:
        """Make memory of a client with a copy of `content`. Return its handle and the client's view of it."""
        handle, memory = os.urandom(64), np.array(content)
        self._shared[handle] = memory
        return handle, memory

    def open(self, handle: bytes, device: int) -> int:
        if handle not in self._shared or device != self.device.device[1]:
            raise RuntimeError("cudaErrorInvalidValue: invalid argument")
        address = int(self._shared[handle].ctypes.data)
        self.opened.append(address)
        return address

    def size(self, address: int, device: int) -> int:
        found = [each for each in self._shared.values() if each.ctypes.data == address]
        return int(found[0].nbytes)

    def close(self, address: int, device: int) -> None:
        self.opened.remove(address)

    def to_host(self, target: np.ndarray, address: int, device: int) -> None:
        self.device.copies += 1
        ctypes.memmove(target.ctypes.data, address, target.nbytes)

    def from_host(self, address: int, source: np.ndarray, device: int) -> None:
        self.filled += 1
        ctypes.memmove(address, source.ctypes.data, source.nbytes)

    def between(
        self, target: int, target_device: int, source: int, source_device: int, byte_size: int
    ) -> None:
        self.moved += 1
        ctypes.memmove(target, source, byte_size)
