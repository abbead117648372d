"""Requests whose tensors are in GPU memory that the client shares: which data is copied."""

import numpy as np
import pytest
from core_testing.fake_device import FakeDevice
from core_testing.fake_runtime import FakeRuntime

import core
from core import dtypes
from core.devices import dlpack
from core.request import InferenceRequest, RequestedOutput
from frontends.shared.memory import SharedMemoryRegions
from frontends.shared.memory.cuda import CudaRegions


class Plain(core.ModelInstance):
    """y = x + 1 on the host."""

    def execute(self, batch):
        self.model.recorder.batches.append(batch["x"])
        return {"y": batch["x"] + 1}


class Device(core.ModelInstance):
    """y = x + 1 on the device; sees the addresses of its arrays like a library."""

    memory = "device"

    def execute(self, batch):
        x = batch["x"]
        self.model.recorder.batches.append(dlpack.array_info(dlpack.exported(x)))
        return {"y": self.model.recorder.place.array(self.model.recorder.read(x) + 1)}


@pytest.fixture
def runtime():
    return FakeRuntime(FakeDevice())


@pytest.fixture
async def regions(runtime):
    """A region "r" of sixteen floats; `memory` is its client's."""
    found = SharedMemoryRegions(allowed=True)
    handle, found_memory = runtime.share(np.arange(16, dtype=np.float32))
    await CudaRegions(found, (0,), lambda: runtime).register("r", handle, 0, 64)
    found.client = found_memory
    return found


def asked(regions):
    x = regions.read("r", 0, 8, dtypes.FP32).tensor("x", dtypes.FP32, (1, 2), "m")
    outputs = (RequestedOutput("y", memory=regions.view("r", 32, 8)),)
    return InferenceRequest("m", {"x": x}, outputs=outputs, shared=True)


async def test_a_model_on_the_device_reads_and_writes_there_without_host_copies(
    serve, regions, runtime
):
    chain = await serve(Device)
    chain.recorder.place = runtime.device
    chain.recorder.read = lambda x: regions.client[:2].reshape(1, 2)

    response = await chain.handler(asked(regions))

    assert chain.recorder.batches[0].address == regions.client.ctypes.data
    assert regions.client[8:10].tolist() == [1, 2]
    assert (runtime.device.copies, runtime.filled, runtime.moved) == (0, 0, 1)
    assert (response.output("y").shape, response.output("y").dtype) == ((1, 2), dtypes.FP32)


async def test_a_model_on_the_host_gets_copies(serve, regions, runtime):
    chain = await serve(Plain)

    await chain.handler(asked(regions))

    assert chain.recorder.batches[0].tolist() == [[0, 1]]
    assert regions.client[8:10].tolist() == [1, 2]
    assert (runtime.device.copies, runtime.filled, runtime.moved) == (1, 1, 0)


async def test_requests_of_the_device_and_of_the_host_share_a_batch(serve, regions, runtime):
    chain = await serve(Plain, "dynamic_batching { max_queue_delay_microseconds: 1000 }")
    host = InferenceRequest("m", {"x": core.Tensor.of("x", np.array([[5, 6]], np.float32))})

    first, second = chain.handler(asked(regions)), chain.handler(host)
    await first

    assert (await second).output("y").array.tolist() == [[6, 7]]
    assert len(chain.recorder.batches) == 1
    assert regions.client[8:10].tolist() == [1, 2]
