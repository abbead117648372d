"""All that is asked of torch.cuda: streams, copies between host and devices, marks.

feed, results ─► [DeviceStreams] ─► torch ─► GPUs.  Tests play it.

    copies    inputs of batch 1 │ inputs of batch 2 │ …
    compute                     │ batch 1           │ batch 2            │ …
    results                                         │ outputs of batch 1 │ …

Memory belongs to the stream that was current when it was made: torch gives it out again to that stream at
once, to others not before it is done. So whatever goes from one stream to the next is recorded there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from typing import Any

import numpy as np
import torch

from backend_pytorch.tensors import array_of
from core.backend import Device
from core.devices import dlpack


def streams_of(device: Device, program: Any) -> DeviceStreams:
    """The streams of an instance on a GPU, or of a model that has placed itself where its program is."""
    if device.kind == "GPU":
        found = torch.device("cuda", device.id)
        return DeviceStreams(found, every_gpu=False, waits=program.keeps_outputs)
    return DeviceStreams(_home(program), every_gpu=True, waits=program.keeps_outputs)


def _home(program: Any) -> Any:
    """Where the first parameter of a program is."""
    found = getattr(program, "device", None)
    if found is None:
        module = getattr(program, "module", None)
        first = next(iter(module.parameters()), None) if module is not None else None
        found = torch.device("cpu") if first is None else first.device
    return found


def without_cudnn() -> AbstractContextManager[None]:
    """Within it torch does without cuDNN."""
    made: AbstractContextManager[None] = torch.backends.cudnn.flags(enabled=False)
    return made


def empty_cache() -> None:
    """Give back to the driver what torch keeps for later."""
    torch.cuda.empty_cache()


class DeviceStreams:
    """The streams of one instance: on its device, or on every GPU for a model that places itself.

    device   where inputs go: a torch.device with a number, or the CPU for a model that begins there
    place    the same as DLPack has it, None for the CPU
    waits    outputs are copied before the next batch computes, which may write to them
    Used by one thread, but for `Mark.wait`.
    """

    def __init__(self, device: Any, *, every_gpu: bool, waits: bool):
        self.device = device
        self._kind = dlpack.ROCM if torch.version.hip else dlpack.CUDA
        self.place = (self._kind, device.index) if device.type == "cuda" else None
        numbers = range(torch.cuda.device_count()) if every_gpu else [device.index]
        self._compute = {number: _stream(number) for number in numbers}
        self._results = self._compute if waits else {number: _stream(number) for number in numbers}
        self._copies: dict[int, Any] = {}  # of another GPU when a tensor first comes from there

    def takes(self, device: tuple[int, int] | None) -> bool:
        """Return whether what is there, as DLPack has it, comes here without the host."""
        return self.place is not None and device is not None and device[0] == self._kind

    @contextmanager
    def feeding(self) -> Iterator[None]:
        """Within it what torch does goes to the stream of copies."""
        with ExitStack() as entered:
            if self.place is not None:
                entered.enter_context(torch.cuda.stream(self._copying(self.device.index)))
            yield

    @contextmanager
    def computing(self) -> Iterator[None]:
        """Within it what torch does goes to the streams of computation."""
        with ExitStack() as entered:
            for stream in self._compute.values():
                entered.enter_context(torch.cuda.stream(stream))
            entered.enter_context(self.current())
            yield

    @contextmanager
    def current(self) -> Iterator[None]:
        """Within it the instance's GPU is the thread's current one."""
        with ExitStack() as entered:
            if self.place is not None:
                entered.enter_context(torch.cuda.device(self.device))
            yield

    def staging(self, size: int) -> Any:
        """Host memory that the device reaches by itself: a tensor uint8[size]. It comes from torch's pool,
        which does not give it out again before the copies from it are done."""
        return torch.empty(size, dtype=torch.uint8, pin_memory=self.place is not None)

    def to_device(self, staged: Any) -> Any:
        """A copy of a tensor in `staging`, under way on the current stream."""
        return staged if self.place is None else staged.to(self.device, non_blocking=True)

    def adopted(self, array: Any) -> Any:
        """A tensor over an array of a GPU, where it is, without a copy.

        The stream of copies there waits for whatever the producer says by DLPack. The array must be held
        until the mark of the batch: torch cannot keep memory that is not its own. Raises what the libraries
        raise.
        """
        if isinstance(array, OnGpu):
            return array.tensor
        if isinstance(array, torch.Tensor):
            return array.detach()
        with torch.cuda.stream(self._copying(int(array.__dlpack_device__()[1]))):
            return torch.from_dlpack(array)

    def is_here(self, tensor: Any) -> bool:
        """Return whether a tensor is on the device of the instance."""
        return bool(tensor.device == self.device)

    def across(self, tensor: Any) -> Any:
        """A copy of a tensor of another GPU, under way; the current stream waits for it."""
        with torch.cuda.stream(self._copying(tensor.device.index)):
            return tensor.to(self.device, non_blocking=True)

    def fed(self, tensors: Iterable[Any]) -> None:
        """Computation waits for all that was fed so far; these tensors are used there from now on."""
        if self.place is None:
            return
        compute = self._compute[self.device.index]
        compute.wait_stream(self._copying(self.device.index))
        for tensor in tensors:
            tensor.record_stream(compute)

    def computed(self) -> None:
        """What is copied to the host from now on waits for all that computes so far."""
        for number, results in self._results.items():
            if results is not self._compute[number]:
                results.wait_stream(self._compute[number])

    def on_host(self, tensor: Any) -> bool:
        """Return whether the host reads it as its own memory: a model may place itself there."""
        return bool(tensor.device.type == "cpu")

    def to_host(self, tensor: Any) -> Any:
        """A copy in pinned memory of its own, under way on the stream of results of its GPU."""
        landed = torch.empty(tensor.shape, dtype=tensor.dtype, pin_memory=True)
        results = self._results[tensor.device.index]
        with torch.cuda.stream(results):
            landed.copy_(tensor, non_blocking=True)
        tensor.record_stream(results)
        return landed

    def shown(self, tensor: Any) -> Any:
        """A tensor that stays, for core and whoever takes it."""
        return OnGpu(tensor, (self._kind, tensor.device.index))

    def mark(self) -> Mark:
        """Comes to pass when all is done that was begun so far."""
        events = []
        for stream in self._results.values():
            event = torch.cuda.Event(blocking=True)  # who waits sleeps
            event.record(stream)
            events.append(event)
        return Mark(events)

    def settle(self) -> None:
        """Wait until nothing is under way. Raises what went wrong on a device."""
        for streams in (self._copies, self._compute, self._results):
            for stream in list(streams.values()):
                stream.synchronize()

    def _copying(self, number: int) -> Any:
        if number not in self._copies:
            self._copies[number] = _stream(number)
        return self._copies[number]


class Mark:
    """A point in the streams of an instance: the work that was queued before it."""

    def __init__(self, events: list[Any]):
        self._events = events

    def wait(self) -> None:
        """Wait until that work is done. Thread-safe. Raises its errors."""
        for event in self._events:
            event.synchronize()


class OnGpu:
    """An output that stays on a GPU, for whoever takes arrays by DLPack (CuPy, JAX, PyTorch, …).

    Not the tensor itself, which is exported only on a thread whose current device is its own. What has made
    it had ended before it was handed over: there is nothing to wait for.
    """

    def __init__(self, tensor: Any, device: tuple[int, int]):
        self.tensor = tensor
        self.shape = tuple(tensor.shape)
        self.dtype = tensor.dtype
        self._device = device

    def __getitem__(self, key: Any) -> OnGpu:
        return OnGpu(self.tensor[key], self._device)

    def reshape(self, shape: tuple[int, ...]) -> OnGpu:
        """The same elements under another shape."""
        return OnGpu(self.tensor.reshape(shape), self._device)

    def get(self) -> np.ndarray:
        """A copy in host memory; BF16 as its bit patterns."""
        return array_of(self.tensor.cpu(), copy=False)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._device

    def __dlpack__(self, *, stream: Any = None, max_version: Any = None) -> Any:
        with torch.cuda.device(self.tensor.device):
            return self.tensor.__dlpack__(stream=-1)


def _stream(number: int) -> Any:
    return torch.cuda.Stream(device=torch.device("cuda", number))
