"""Batches on a fake GPU with the server's pools: what uses them, and when memory returns."""

import asyncio
import gc
import time
import weakref

import numpy as np
import pytest
import torch
from backend_pytorch import pooled
from core_testing.fake_device import FakeDevice

from core.devices import pools
from core.errors import CoreError
from core.request import SEQUENCE_END, SEQUENCE_START, DeviceOutput, InferenceRequest
from core.tensor import Tensor

GROUP = "instance_group [ { kind: KIND_MODEL count: 1 } ] "
X = np.arange(6, dtype=np.float32).reshape(2, 3)


class Owned:
    """Memory whose arrays keep this object, and so `owner`."""

    def __init__(self, array, owner=None):
        self.array, self.owner = array, owner
        self.__array_interface__ = array.__array_interface__


class Range:
    """A growable range in the memory of the host. `sizes`: all that was asked for."""

    def __init__(self, limit):
        self.limit, self.whole, self.sizes = limit, np.full(1 << 16, 0xEE, np.uint8), []
        self.address = self.whole.ctypes.data

    def memory(self, size):
        self.sizes.append(size)
        return np.asarray(Owned(self.whole[:size], self))


class FakePools(pools.Pools):
    """Pools in the memory of the host, with room for `room` parts each."""

    def __init__(self):
        self.room, self.limit, self.full, self.made = 100, 1000, 0, 0
        self.host, self.gpu, self.ranges = weakref.WeakSet(), weakref.WeakSet(), weakref.WeakSet()

    def _part(self, parts, size):
        if len(parts) >= self.room:
            self.full += 1
            return None
        parts.add(found := Owned(np.full(size, 0xEE, np.uint8)))
        return np.asarray(found)

    def on_host(self, size):
        found = self._part(self.host, size)
        return np.full(size, 0xDD, np.uint8) if found is None else found

    def on_gpu(self, number, size):
        return self._part(self.gpu, size)

    def growable(self, number):
        self.made += 1
        self.ranges.add(made := Range(self.limit))
        return made


@pytest.fixture
def own():
    """The pools of the server."""
    found = FakePools()
    pools.use(found)
    yield found
    pools.leave(found)


@pytest.fixture
def streams(monkeypatch, fake_streams):
    """The FakeStreams of all open instances."""
    made, gpu = [], FakeDevice()

    def streams_of(device, program, polls):
        made.append(fake_streams(gpu, program.keeps_outputs))
        return made[-1]

    monkeypatch.setattr("backend_pytorch.instance.has_gpus", lambda: True)
    monkeypatch.setattr("backend_pytorch.cuda.streams_of", streams_of)
    return made


@pytest.fixture
def model(serve, io, streams, own):
    """model(module): serve x: FP32[3] → y: FP32[3] on a fake GPU; return it and its streams."""

    def start(module):
        ports = io("input", ("x", "FP32", 3)) + io("output", ("y", "FP32", 3))
        return serve(module, "max_batch_size: 8 " + ports + GROUP), streams[-1]

    return start


def asked(x, outputs=(), **more):
    x = np.asarray(x, np.float32)
    return InferenceRequest("m", {"x": Tensor.of("x", x)}, outputs=outputs, **more)


def tensors(model, *requests):
    """Send the requests at once; return core's Tensor y of each. Raises the error of a request."""

    async def act():
        replies = [model.served._server.models.infer(each) for each in requests]
        return [(await reply).output("y") for reply in replies]

    return model.served._call(act())


def come_back(*kinds):
    """Return whether all memory comes back. A thread lets it go just after the answers are there."""
    for _ in range(1000):
        gc.collect()
        if not any(map(len, kinds)):
            return True
        time.sleep(0.005)
    return False


class TestCopies:
    def test_copies_use_the_pools(self, model, modules, own):
        served, _ = model(modules.Listed())

        (y,) = tensors(served, asked(X))

        assert np.array_equal(y.array, X + 1)
        assert come_back(own.gpu) and len(own.host) == 1  # the answer's
        del y
        assert come_back(own.host)

    def test_memory_is_in_use_until_the_mark(self, model, modules, own):
        served, streams = model(modules.Listed())
        streams.gate.clear()

        async def act():
            reply = served.served._server.models.infer(asked(X))
            while not streams.count("mark"):
                await asyncio.sleep(0)
            gc.collect()
            held = len(own.host), len(own.gpu)
            streams.gate.set()
            await reply
            return held

        assert served.served._call(act()) == (2, 1)
        assert come_back(own.host, own.gpu)

    def test_full_pools_are_no_error(self, model, modules, own):
        served, _ = model(modules.Listed())
        own.room = 0

        assert np.array_equal(served(x=X)["y"], X + 1)
        assert own.full == 3

    def test_an_output_that_stays_keeps_no_part_of_a_pool(self, model, modules, own):
        served, _ = model(modules.Identity())

        (y,) = tensors(served, asked(X, (DeviceOutput("y"),)))

        assert come_back(own.gpu) and np.array_equal(y.array, X)

    def test_a_failed_run_gives_its_memory_back(self, serve, io, modules, streams, own):
        served = serve(
            modules.Pick(),
            "max_batch_size: 8 "
            + io("input", ("x", "FP32", 3), ("index", "INT64", 1))
            + io("output", ("OUTPUT__0", "FP32", 3), ("OUTPUT__1", "FP32", 1))
            + GROUP,
        )

        with pytest.raises(CoreError, match="index 9 is out of bounds"):
            served(x=X, index=np.full((2, 1), 9))

        assert come_back(own.host, own.gpu)


def test_tensors_of_the_host_keep_their_part(own):
    tensor = pooled.on_host(64).view(torch.float32).reshape(4, 4)
    gc.collect()

    assert len(own.host) == 1
    del tensor
    assert len(own.host) == 0


class TestGrowableStates:
    @pytest.fixture
    def sequences(self, serve, io, streams, own):
        """sequences(module, *states): serve x and y: FP32[1] with growable states (input, output, dims)."""

        def start(module, *states, outputs=()):
            text = ", ".join(
                f'{{ input_name: "{a}" output_name: "{b}" data_type: TYPE_FP32 dims: [ {dims} ] '
                "use_same_buffer_for_input_output: true use_growable_memory: true }"
                for a, b, dims in states
            )
            more = [(name, "FP32", 1) for name in outputs]
            ports = io("input", ("x", "FP32", 1)) + io("output", ("y", "FP32", 1), *more)
            return serve(
                module,
                "max_batch_size: 4 sequence_batching { direct { max_queue_delay_microseconds: 200000 "
                f"minimum_slot_utilization: 1 }} state [ {text} ] }} " + ports + GROUP,
            )

        return start

    def send(self, model, value, flags=0, *, of=4):
        (y,) = tensors(model, asked([[value]], correlation_id=of, flags=flags))
        return y.array.item()

    def test_a_state_grows_in_place(self, sequences, modules, own):
        model = sequences(modules.Appending(), ("all", "after", -1))

        found = [self.send(model, 1, SEQUENCE_START), self.send(model, 2), self.send(model, 3)]

        assert found == [1, 3, 6]
        (own_range,) = own.ranges
        assert own_range.sizes == [8, 12, 16]
        assert own_range.whole[:16].view(np.float32).tolist() == [0, 1, 2, 3]

    def test_the_range_ends_with_the_sequence(self, sequences, modules, own):
        model = sequences(modules.Adding(), ("total", "after", 1))

        assert self.send(model, 1, SEQUENCE_START) == 1
        assert self.send(model, 2, SEQUENCE_END) == 3

        assert come_back(own.ranges)

    def test_sequences_of_one_batch_have_their_own_ranges(self, sequences, modules, own):
        model = sequences(modules.Appending(), ("all", "after", -1))
        starts = [asked([[n]], correlation_id=n, flags=SEQUENCE_START) for n in (10, 20, 30)]

        tensors(model, *starts)
        found = tensors(model, *(asked([[1]], correlation_id=n) for n in (10, 20, 30)))

        assert [y.array.item() for y in found] == [11, 21, 31]
        values = {tuple(each.whole[:12].view(np.float32)) for each in own.ranges}
        assert values == {(0, 10, 1), (0, 20, 1), (0, 30, 1)}

    def test_a_row_that_fills_a_slot_needs_no_range(self, sequences, modules, own):
        model = sequences(modules.Adding(), ("total", "after", 1))
        starts = [asked([[n]], correlation_id=n, flags=SEQUENCE_START) for n in (10, 20)]
        tensors(model, *starts)

        assert self.send(model, 1, SEQUENCE_END, of=10) == 11
        assert self.send(model, 1, of=20) == 21  # with a row of zeros before it

        assert own.made == 2

    def test_an_output_in_the_memory_of_the_old_state_is_right(self, sequences, modules):
        model = sequences(modules.Before(), ("total", "after", 1))

        found = [self.send(model, 5, SEQUENCE_START), self.send(model, 2), self.send(model, 0)]

        assert found == [0, 5, 7]

    def test_states_that_change_places_do_not_overwrite_each_other(self, sequences, modules, own):
        model = sequences(modules.Turning(), ("a", "new_a", 1), ("b", "new_b", 1))

        found = [
            self.send(model, n, 0 if i else SEQUENCE_START) for i, n in enumerate((7, 1, 0, 0))
        ]

        assert found == [0, 7, 1, 7]
        assert len(own.ranges) == 2

    def test_a_state_beyond_the_limit_fails_its_request_only(self, sequences, modules, own):
        own.limit = 12
        model = sequences(modules.Appending(), ("all", "after", -1))
        self.send(model, 1, SEQUENCE_START)
        self.send(model, 2)

        with pytest.raises(CoreError) as error:
            self.send(model, 3)

        assert error.value.message == (
            "model 'm': state 'after' has 16 bytes, --cuda-virtual-address-size=0:12 permits 12 bytes; give "
            "more, such as --cuda-virtual-address-size=0:16, or do without use_growable_memory"
        )
        (own_range,) = own.ranges
        assert own_range.whole[:12].view(np.float32).tolist() == [0, 1, 2]
        assert self.send(model, 9, SEQUENCE_START) == 9

    def test_a_gpu_without_memory_keeps_the_state_elsewhere(self, sequences, modules, monkeypatch):
        monkeypatch.setattr(Range, "memory", lambda self, size: None)
        model = sequences(modules.Adding(), ("total", "after", 1))

        assert [self.send(model, 1, SEQUENCE_START), self.send(model, 2)] == [1, 3]

    def test_a_state_that_is_also_an_output_stays_where_the_model_wrote_it(
        self, sequences, modules, own
    ):
        model = sequences(modules.Adding(), ("total", "after", 1), outputs=["after"])

        assert [self.send(model, 1, SEQUENCE_START), self.send(model, 2)] == [1, 3]
        assert len(own.ranges) == 0
