"""What this backend takes from the server's pools, and what it does without them."""

from contextlib import contextmanager, nullcontext
from types import SimpleNamespace

import numpy as np
import pytest
from backend_tensorrt.cuda import Cuda
from backend_tensorrt.slot import Slot

from core.devices import pools


class FakePools(pools.Pools):
    """Pools with room for one part each. `taken`: number of the GPU, or "host", and size."""

    def __init__(self):
        self.taken = []

    def on_host(self, size):
        self.taken.append(("host", size))
        return np.zeros(size, np.uint8)

    def on_gpu(self, number, size):
        full = any(each[0] == number for each in self.taken)
        self.taken.append((number, size))
        return None if full else SimpleNamespace(ptr=4096)


@pytest.fixture
def cuda():
    """A Cuda on a fake CuPy, whose current device is 3, and whose memory is at 512."""
    gpu = SimpleNamespace(
        runtime=SimpleNamespace(getDevice=lambda: 3),
        alloc=lambda size: SimpleNamespace(ptr=512),
        alloc_pinned_memory=bytearray,
        Event=lambda **_: None,
    )
    return Cuda(SimpleNamespace(cuda=gpu))


@contextmanager
def used(own):
    pools.use(own)
    yield own
    pools.leave(own)


def test_without_pools_memory_is_that_of_cupy(cuda):
    assert cuda.pinned(10).size == 10
    assert cuda.input_memory(10, nullcontext()).ptr == 512


def test_pinned_memory_is_that_of_the_pool(cuda):
    with used(FakePools()) as own:
        assert cuda.pinned(10).size == 10

    assert own.taken == [("host", 10)]


def test_inputs_are_in_the_pool_of_the_current_gpu_while_it_has_room(cuda):
    with used(FakePools()) as own:
        slot = Slot(cuda, nullcontext(), nullcontext(), busy=False)
        first, second, output = (
            slot.buffer(name, is_input).at_least(10)
            for name, is_input in (("a", True), ("b", True), ("y", False))
        )

    assert (first, second, output) == (4096, 512, 512)
    assert own.taken == [(3, 10), (3, 10)]


def test_an_open_instance_gets_the_pools_of_its_gpu_ready(serve, twice):
    opened = []
    own = FakePools()
    own.open = opened.append

    with used(own):
        serve()

    assert opened == [0]
