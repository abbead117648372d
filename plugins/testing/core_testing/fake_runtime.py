"""What speaks to GPUs, for tests on machines that have none: memory of other processes is numpy's.

A test makes memory as a client would, gives its handle to the server, and sees what became of it: whether
it was opened and closed, how often and which way bytes were copied.
"""

from __future__ import annotations

import ctypes
import os

import numpy as np

from core_testing.fake_device import FakeDevice


class FakeRuntime:
    """A stand-in for frontends/shared/memory/device_runtime.py, of one FakeDevice.

    device   its `copies` counts what is copied to the host
    opened   addresses that are open, each as often as it is
    filled   how often bytes came from the host
    moved    how often bytes went from device memory to device memory
    """

    def __init__(self, device: FakeDevice):
        self.device = device
        self.opened: list[int] = []
        self.filled = 0
        self.moved = 0
        self._shared: dict[bytes, np.ndarray] = {}

    def share(self, content: np.ndarray) -> tuple[bytes, np.ndarray]:
        """Memory of a client with this content: its handle, and the memory as the client sees it."""
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
