"""A fake GPU: tensors compute on the CPU, and a log records the places of all operations."""

import threading
from contextlib import contextmanager

import torch
from core_testing.fake_device import DeviceArray, FakeDevice

from core.devices import pools


class FakeStreams:
    """A backend_pytorch.cuda.DeviceStreams on a FakeDevice.

    A copy to the host has its content only after a wait for its mark, with the content of the memory
    then: as late as the order of the streams allows. With `waits` that is before the next batch
    computes.

    log     stream (copies, compute, results, host) and operation
    gate    marks complete while it is set
    breaks  raised by marks
    """

    def __init__(self, device: FakeDevice, waits: bool):
        self.fake = device
        self.place = device.device
        self.waits = waits
        self.log = []
        self.gate = threading.Event()
        self.gate.set()
        self.breaks = None
        self._now = threading.local()
        self._elsewhere = set()
        self._copies = []

    def did(self, what, stream=None):
        self.log.append((stream or getattr(self._now, "stream", "host"), what))

    def count(self, what):
        """Return how often an operation was done."""
        return sum(each == what for _, each in self.log)

    def takes(self, device):
        return device is not None and device[0] == self.place[0]

    @contextmanager
    def _on(self, stream):
        before = getattr(self._now, "stream", "host")
        self._now.stream = stream
        yield
        self._now.stream = before

    def feeding(self):
        return self._on("copies")

    def computing(self):
        return self._on("compute")

    def current(self):
        return self._on("host")

    def staging(self, size):
        self.did(f"staging of {size}")
        found = pools.current().on_host(size)
        if found is None:
            return torch.full((size,), 0xEE, dtype=torch.uint8)
        return torch.from_numpy(found)

    def room(self, staged):
        part = pools.current().on_gpu(self.place[1], staged.nbytes)
        if part is None:
            return torch.full_like(staged, 0xDD), False
        return _as(staged, part), True

    def send(self, staged, room, begin, end):
        self.did("to device")
        room[begin:end] = staged[begin:end]

    def adopted(self, array):
        if not isinstance(array, DeviceArray):
            raise BufferError("it cannot be exported")
        self.did("adopted")
        found = torch.from_numpy(array._held)
        if array.place.device != self.place:
            self._elsewhere.add(found.data_ptr())
        return found

    def is_here(self, tensor):
        return tensor.data_ptr() not in self._elsewhere

    def across(self, tensor):
        self.did("across")
        return tensor.clone()

    def fed(self, tensors):
        self.did(f"compute waits, for {len(list(tensors))}")

    def on_host(self, tensor):
        return False

    def computed(self):
        self.did("results wait")

    def to_host(self, tensor):
        self.did("to host", "results")
        found = pools.current().on_host(tensor.nbytes)
        copy = torch.empty_like(tensor) if found is None else _as(tensor, found)
        copy.fill_(77)
        self._copies.append((copy, tensor.clone() if self.waits else tensor))
        return copy

    def address(self, array):
        return array._held.ctypes.data if isinstance(array, DeviceArray) else 0

    def grown(self, memory, tensor):
        self.did("grown")
        return _as(tensor, memory).copy_(tensor)

    def shown(self, tensor):
        return DeviceArray(self.fake, tensor.numpy())

    def mark(self):
        self.did("mark", "results")
        copies, self._copies = self._copies, []
        return FakeMark(self, copies)

    def settle(self):
        self.did("settled")


def _as(tensor, memory):
    """Return an array uint8[…] as a tensor with the datatype and shape of another one."""
    return torch.from_numpy(memory).view(tensor.dtype).reshape(tensor.shape)


class FakeMark:
    def __init__(self, streams, copies):
        self._streams = streams
        self._copies = copies

    def wait(self):
        assert self._streams.gate.wait(30)
        self._streams.did("done", "host")
        if self._streams.breaks is not None:
            raise self._streams.breaks
        with torch.inference_mode():
            for copy, tensor in self._copies:
                copy.copy_(tensor)
