"""The streams of an instance on GPUs: copies between host and devices, computation, marks.

feed, results ─► [DeviceStreams] ─► torch ─► GPUs.  Tests implement it without a GPU.

    copies    inputs of batch 1 │ inputs of batch 2 │ …
    compute                     │ batch 1           │ batch 2            │ …
    results                                         │ outputs of batch 1 │ …

Memory belongs to the stream that is current at its allocation: torch reuses freed memory for that stream at
once, even if another stream still reads it. So a tensor that another stream uses is recorded there.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from contextlib import ExitStack, contextmanager
from typing import Any

import numpy as np
import torch

from backend_pytorch import pooled
from backend_pytorch.tensors import array_of
from core.backend import Device
from core.devices import dlpack, pools


def streams_of(device: Device, program: Any, *, polls: bool = False) -> DeviceStreams:
    """Return the streams of an instance: on its GPU, or on every GPU for a model that places itself.

    Opens the server's pools of memory for the GPU of the inputs.
    """
    single = device.kind == "GPU"
    found = torch.device("cuda", device.id) if single else _home(program)
    if found.type == "cuda":
        pools.current().open(found.index)
    return DeviceStreams(found, every_gpu=not single, waits=program.keeps_outputs, polls=polls)


def _home(program: Any) -> Any:
    """Return the device of a program, else of the first parameter of its module, else the CPU."""
    found = getattr(program, "device", None)
    if found is None:
        module = getattr(program, "module", None)
        first = next(iter(module.parameters()), None) if module is not None else None
        found = torch.device("cpu") if first is None else first.device
    return found


class DeviceStreams:
    """The streams of one instance: on its device, or on every GPU for a model that places itself.

    device      device of the inputs: a torch.device with a number, or the CPU for a model that starts there
    place       the same device in DLPack, None for the CPU
    every_gpu   make streams on every GPU of the process
    waits       outputs are copied before the next batch computes, because it may write to them
    polls       a thread that waits for a batch keeps a core busy instead of sleeping
    Not thread-safe, except for `Mark.wait`.
    """

    def __init__(self, device: Any, *, every_gpu: bool, waits: bool, polls: bool = False):
        self.device = device
        self._sleeps = not polls
        self._kind = dlpack.ROCM if torch.version.hip else dlpack.CUDA
        self.place = (self._kind, device.index) if device.type == "cuda" else None
        numbers = range(torch.cuda.device_count()) if every_gpu else [device.index]
        self._compute = {number: _stream(number) for number in numbers}
        self._results = self._compute if waits else {number: _stream(number) for number in numbers}
        self._copies: dict[int, Any] = {}  # of another GPU when a tensor first comes from there

    def takes(self, device: tuple[int, int] | None) -> bool:
        """Return whether a tensor of `device` gets to the instance's GPU without a copy through the host.

        device   kind and number in DLPack; None for the host
        """
        return self.place is not None and device is not None and device[0] == self._kind

    @contextmanager
    def feeding(self) -> Iterator[None]:
        """Make torch use the stream of copies inside the with statement, unless inputs are on the CPU."""
        with ExitStack() as entered:
            if self.place is not None:
                entered.enter_context(torch.cuda.stream(self._copying(self.device.index)))
            yield

    @contextmanager
    def computing(self) -> Iterator[None]:
        """Make torch use the streams of computation inside the with statement."""
        with ExitStack() as entered:
            for stream in self._compute.values():
                entered.enter_context(torch.cuda.stream(stream))
            entered.enter_context(self.current())
            yield

    @contextmanager
    def current(self) -> Iterator[None]:
        """Make the GPU of the inputs, if they are on one, the current device inside the with statement."""
        with ExitStack() as entered:
            if self.place is not None:
                entered.enter_context(torch.cuda.device(self.device))
            yield

    def staging(self, size: int) -> Any:
        """Return a new tensor uint8[size] in host memory: in pinned memory if the inputs go to a GPU.

        The caller keeps it until it has waited for the batch's Mark.
        """
        return torch.empty(size, dtype=torch.uint8) if self.place is None else pooled.on_host(size)

    def room(self, staged: Any) -> tuple[Any, bool]:
        """Return memory for a copy of a tensor in `staging`, and whether it is a part of a pool.

        It is uint8[size] on the GPU of the inputs, or the tensor itself if the inputs are on the CPU. Other
        memory than a pool's belongs to the current stream.
        """
        if self.place is None:
            return staged, False
        size = staged.numel()
        found = pooled.on_gpu(self.device, size)
        if found is None:
            return torch.empty(size, dtype=torch.uint8, device=self.device), False
        return found, True

    def send(self, staged: Any, room: Any, begin: int, end: int) -> None:
        """Start a copy of some bytes of a tensor in `staging` to the same bytes of its `room`."""
        if room is not staged:
            place = 0, begin, end - begin
            room.narrow(*place).copy_(staged.narrow(*place), non_blocking=True)

    def adopted(self, array: Any) -> Any:
        """Return a torch tensor that uses the memory of an array on a GPU.

        An array of another library is imported by DLPack: the stream of copies on that GPU then waits for the
        producer's stream. An OnGpu or a torch tensor is used without a wait. The caller keeps the array until
        it has waited for the batch's Mark, because torch cannot keep memory of others. Raises the errors of
        the libraries.
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
        """Start a copy of another GPU's tensor to the instance's GPU, and return the copy.

        The current stream waits for the copy.
        """
        with torch.cuda.stream(self._copying(tensor.device.index)):
            return tensor.to(self.device, non_blocking=True)

    def fed(self, tensors: Iterable[Any]) -> None:
        """Make computation wait for all copies so far, and record that it uses these tensors.

        Does nothing if the inputs are on the CPU.
        """
        if self.place is None:
            return
        compute = self._compute[self.device.index]
        compute.wait_stream(self._copying(self.device.index))
        for tensor in tensors:
            tensor.record_stream(compute)

    def computed(self) -> None:
        """Make later copies to the host wait for all computation so far."""
        for number, results in self._results.items():
            if results is not self._compute[number]:
                results.wait_stream(self._compute[number])

    def on_host(self, tensor: Any) -> bool:
        """Return whether a tensor is in host memory; a model may place itself there."""
        return bool(tensor.device.type == "cpu")

    def to_host(self, tensor: Any) -> Any:
        """Start a copy of a tensor to new host memory, on its GPU's stream of results. Return the copy.

        The memory is that of `pooled.on_host`. A copy to ordinary memory is complete when this returns.
        """
        copy = pooled.on_host(_size(tensor)).view(tensor.dtype).reshape(tensor.shape)
        results = self._results[tensor.device.index]
        with torch.cuda.stream(results):
            copy.copy_(tensor, non_blocking=True)
        tensor.record_stream(results)
        return copy

    def shown(self, tensor: Any) -> Any:
        """Return a tensor that stays on its GPU as an OnGpu, an array for core with the same memory."""
        return OnGpu(tensor, (self._kind, tensor.device.index))

    def address(self, array: Any) -> int:
        """Return the address of an array that `shown` has returned, 0 for any other array."""
        return int(array.tensor.data_ptr()) if isinstance(array, OnGpu) else 0

    def grown(self, memory: Any, tensor: Any) -> Any:
        """Start a copy of a tensor to memory of a range, on the current stream, and return the copy."""
        copy = (
            torch.as_tensor(memory, device=tensor.device).view(tensor.dtype).reshape(tensor.shape)
        )
        return copy.copy_(tensor, non_blocking=True)

    def mark(self) -> Mark:
        """Return a mark after all work that is queued so far on the streams of results."""
        events = []
        for stream in self._results.values():
            event = torch.cuda.Event(blocking=self._sleeps)
            event.record(stream)
            events.append(event)
        return Mark(events)

    def settle(self) -> None:
        """Block until all streams are idle. Raises errors of a device."""
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
        """Wait until that work is done. Thread-safe. Raises the errors of that work."""
        for event in self._events:
            event.synchronize()


class OnGpu:
    """An output that stays on a GPU, exported by DLPack (to CuPy, JAX, PyTorch, …).

    torch exports a tensor only on a thread whose current device is the tensor's; this object exports it on
    any thread. The computation has completed before core gets the output, so no user of it needs to wait.
    """

    def __init__(self, tensor: Any, device: tuple[int, int]):
        self.tensor = tensor
        self.shape = tuple(tensor.shape)
        self.dtype = tensor.dtype
        self._device = device

    def __getitem__(self, key: Any) -> OnGpu:
        return OnGpu(self.tensor[key], self._device)

    def reshape(self, shape: tuple[int, ...]) -> OnGpu:
        """Return the same elements with another shape."""
        return OnGpu(self.tensor.reshape(shape), self._device)

    def get(self) -> np.ndarray:
        """Return a copy in host memory; BF16 as bit patterns."""
        return array_of(self.tensor.cpu(), copy=False)

    def __dlpack_device__(self) -> tuple[int, int]:
        return self._device

    def __dlpack__(self, *, stream: Any = None, max_version: Any = None) -> Any:
        with torch.cuda.device(self.tensor.device):
            return self.tensor.__dlpack__(stream=-1)


def _size(tensor: Any) -> int:
    """Return the size of a tensor's elements in bytes."""
    return int(tensor.numel() * tensor.element_size())


def _stream(number: int) -> Any:
    return torch.cuda.Stream(device=torch.device("cuda", number))
