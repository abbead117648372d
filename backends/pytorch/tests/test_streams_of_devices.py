"""The calls of DeviceStreams to CUDA: tensors are fake, and streams record their calls."""

from contextlib import contextmanager

import pytest
import torch
from backend_pytorch import pooled
from backend_pytorch.cuda import DeviceStreams, OnGpu, streams_of
from torch._subclasses.fake_tensor import FakeTensorMode

from core.backend import Device
from core.devices import dlpack, pools

GPU = torch.device("cuda", 1)


class Cuda:
    """A fake torch.cuda. Streams are numbered in the order of creation."""

    def __init__(self):
        self.log = []
        self.names = []
        self.now = []

    def make(self, device):
        self.names.append(f"stream {len(self.names)} of {device}")
        return Stream(self, self.names[-1])

    @contextmanager
    def on(self, stream):
        self.now.append(stream)
        yield
        self.now.pop()


class Stream:
    def __init__(self, cuda, name):
        self.cuda = cuda
        self.name = name

    def wait_stream(self, other):
        self.cuda.log.append(f"{self.name} waits for {other.name}")

    def synchronize(self):
        self.cuda.log.append(f"host waits for {self.name}")


class Event:
    def __init__(self, cuda):
        self.cuda = cuda

    def record(self, stream):
        self.name = stream.name
        self.cuda.log.append(f"mark in {stream.name}")

    def synchronize(self):
        self.cuda.log.append(f"host waits for a mark in {self.name}")


@pytest.fixture
def cuda(monkeypatch):
    found = Cuda()
    monkeypatch.setattr(torch.cuda, "Stream", found.make)
    monkeypatch.setattr(torch.cuda, "Event", lambda blocking: Event(found))
    monkeypatch.setattr(torch.cuda, "stream", found.on)
    monkeypatch.setattr(torch.cuda, "device", found.on)
    monkeypatch.setattr(torch.cuda, "device_count", lambda: 2)
    noted = lambda tensor, stream: found.log.append(f"memory is used by {stream.name}")  # noqa: E731
    monkeypatch.setattr(torch.Tensor, "record_stream", noted)
    # A copy to a GPU is nothing that torch can play here.
    monkeypatch.setattr(torch.Tensor, "copy_", lambda copy, source, non_blocking: copy)
    with FakeTensorMode():
        yield found


def sent(streams):
    """Return a tensor FP32[6] whose bytes are sent to the device."""
    staged = streams.staging(24)
    room, _ = streams.room(staged)
    streams.send(staged, room, 0, 24)
    return room.view(torch.float32)


def run(streams):
    """Do the steps of a batch in the order of DeviceRuns."""
    with streams.feeding():
        x = sent(streams)
        streams.fed([x])
    with streams.computing():
        y = x + 1
        streams.computed()
        return y, streams.to_host(y), streams.mark()


def test_a_copy_on_the_gpu_uses_the_pool_while_it_has_room(cuda, monkeypatch):
    streams = DeviceStreams(GPU, every_gpu=False, waits=False)
    room = [torch.empty(24, dtype=torch.uint8, device=GPU), None]
    asked = []
    monkeypatch.setattr(pooled, "on_gpu", lambda *given: (asked.append(given), room.pop(0))[1])
    staged = streams.staging(24)

    (first, second) = (streams.room(staged) for _ in range(2))

    assert [first[1], second[1]] == [True, False] and asked == [(GPU, 24)] * 2
    for found, _ in (first, second):
        assert (found.shape, found.dtype, found.device) == ((24,), torch.uint8, GPU)


def test_a_gpu_of_an_instance_gets_its_pools_ready(cuda, monkeypatch):
    class Program:
        keeps_outputs = False

    opened = []
    monkeypatch.setattr(pools.Pools, "open", lambda _, number: opened.append(number))

    streams_of(Device("GPU", 1), Program())

    assert opened == [1]


def test_three_streams_follow_each_other(cuda):
    streams = DeviceStreams(GPU, every_gpu=False, waits=False)

    y, landed, mark = run(streams)
    mark.wait()

    compute, results, copies = (f"stream {i} of cuda:1" for i in range(3))
    assert cuda.log == [
        f"{compute} waits for {copies}",
        f"memory is used by {compute}",
        f"{results} waits for {compute}",
        f"memory is used by {results}",
        f"mark in {results}",
        f"host waits for a mark in {results}",
    ]
    assert (y.device, landed.device.type) == (GPU, "cpu")
    assert cuda.now == []


def test_outputs_that_may_change_are_copied_on_the_stream_of_computation(cuda):
    streams = DeviceStreams(GPU, every_gpu=False, waits=True)

    run(streams)[2].wait()

    assert len(cuda.names) == 2  # computation and copies
    assert cuda.log[-1] == "host waits for a mark in stream 0 of cuda:1"


def test_a_model_on_several_gpus_is_done_when_all_gpus_are(cuda):
    streams = DeviceStreams(GPU, every_gpu=True, waits=False)

    run(streams)[2].wait()

    assert [each for each in cuda.log if "waits for a mark" in each] == [
        "host waits for a mark in stream 2 of cuda:0",
        "host waits for a mark in stream 3 of cuda:1",
    ]


def test_a_tensor_of_another_gpu_is_copied_on_a_stream_of_that_gpu(cuda):
    streams = DeviceStreams(GPU, every_gpu=False, waits=False)
    given = torch.ones(3, device="cuda:0")
    names = []

    class Array:
        def __dlpack_device__(self):
            return dlpack.CUDA, 0

        def __dlpack__(self, **_):
            raise AssertionError("torch asks for it")

    def from_dlpack(array):
        names.append(cuda.now[-1].name)
        return given

    with pytest.MonkeyPatch.context() as patch, streams.feeding():
        patch.setattr(torch, "from_dlpack", from_dlpack)
        found = streams.adopted(Array())
        assert not streams.is_here(found)
        here = streams.across(found)

    assert streams.is_here(here) and names == ["stream 3 of cuda:0"]


def test_an_output_that_stays_is_exported_as_an_array_of_the_gpu(cuda):
    streams = DeviceStreams(GPU, every_gpu=False, waits=False)
    tensor = torch.ones(4, 3, device=GPU, dtype=torch.bfloat16)

    shown = streams.shown(tensor)

    assert shown.__dlpack_device__() == streams.place == (dlpack.CUDA, 1)
    assert (shown.shape, shown.dtype) == ((4, 3), torch.bfloat16)
    assert streams.adopted(shown) is tensor
    assert streams.takes(shown.__dlpack_device__()) and not streams.takes((dlpack.ROCM, 1))


def test_an_output_on_the_gpu_has_rows_shapes_and_a_host_copy():
    shown = OnGpu(torch.ones(4, 3, dtype=torch.bfloat16), (dlpack.CUDA, 1))

    part = shown[1:3].reshape((6,))

    assert part.shape == (6,) and part.__dlpack_device__() == (dlpack.CUDA, 1)
    assert part.get().tolist() == [0x3F80] * 6


def test_settling_waits_for_every_stream(cuda):
    streams = DeviceStreams(GPU, every_gpu=False, waits=False)
    run(streams)
    cuda.log.clear()

    streams.settle()

    assert sorted(cuda.log) == [f"host waits for stream {i} of cuda:1" for i in range(3)]


@pytest.mark.parametrize("kind", ["MODEL", "GPU"])
def test_inputs_go_to_the_gpu_of_the_instance_or_of_the_program(cuda, kind):
    class Program:
        keeps_outputs = False
        device = torch.device("cuda", 0)

    assert streams_of(Device(kind, 1), Program()).place == (dlpack.CUDA, int(kind == "GPU"))


def test_a_model_that_starts_on_the_host_gets_host_memory(cuda):
    streams = DeviceStreams(torch.device("cpu"), every_gpu=True, waits=False)

    with streams.feeding():
        x = sent(streams)
        streams.fed([x])

    assert streams.place is None and streams.on_host(x) and not streams.takes((dlpack.CUDA, 0))
