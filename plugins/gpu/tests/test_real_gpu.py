"""The options on a real GPU: the driver, NVML, and servers whose models take its memory."""

import ctypes
import subprocess
import sys
from ctypes import c_uint64, c_void_p

import numpy as np
import pytest
from core_gpu.driver import DriverError, open_driver
from core_gpu.gpu_pools import GpuPools
from core_gpu.memory import GpuMemory

import core
from core.devices.visible import gpus
from core.errors import CoreError

pytestmark = [
    pytest.mark.gpu,
    pytest.mark.skipif(not gpus(), reason="this process sees no GPU"),
]

GIB = 1 << 30
MODEL_BYTES = 2 * GIB
ON_GPU = "instance_group { kind: KIND_GPU gpus: [ 0 ] }"


class Takes(core.Model):
    """Takes MODEL_BYTES of GPU 0, as a framework does: in its primary context."""

    def load(self):
        self.driver = open_driver()
        self.library = ctypes.CDLL("libcuda.so.1")
        self.address = ctypes.c_uint64()
        self._within("cuMemAlloc_v2", ctypes.byref(self.address), ctypes.c_size_t(MODEL_BYTES))

    def unload(self):
        self._within("cuMemFree_v2", self.address)
        self.driver.release(0)
        self.driver.release(0)

    def _within(self, name, *arguments):
        assert self.library.cuCtxPushCurrent_v2(self.driver.retain(0)) == 0
        assert getattr(self.library, name)(*arguments) == 0
        assert self.library.cuCtxPopCurrent_v2(ctypes.byref(ctypes.c_void_p())) == 0


class Twice(core.ModelInstance):
    def execute(self, batch):
        return {"y": batch["x"] * 2}


@pytest.fixture
def driver():
    return open_driver()


@pytest.fixture
def memory(driver):
    found = GpuMemory(driver.uuid)
    yield found
    found.close()


def test_the_driver_tells_what_nvml_tells(driver):
    import pynvml

    pynvml.nvmlInit()
    handle = pynvml.nvmlDeviceGetHandleByUUID(f"GPU-{driver.uuid(0)}")
    name = pynvml.nvmlDeviceGetName(handle)
    assert driver.name(0) == (name.decode() if isinstance(name, bytes) else name)
    assert driver.capability(0) == tuple(pynvml.nvmlDeviceGetCudaComputeCapability(handle))
    pynvml.nvmlShutdown()


def test_memory_is_what_nvidia_smi_shows(driver, memory):
    line = subprocess.run(
        [
            "nvidia-smi",
            f"--id=GPU-{driver.uuid(0)}",
            "--query-gpu=memory.used,memory.total",
            "--format=csv,noheader,nounits",
        ],
        capture_output=True,
        text=True,
        check=True,
    ).stdout

    used, total = (int(mebibytes) << 20 for mebibytes in line.split(","))
    found = memory.of(0)
    assert abs(found.total - total) < 1 << 20
    assert abs(found.used - used) < 64 << 20


def test_reading_a_gpu_takes_no_memory_of_it():
    code = (
        "from core_gpu.driver import open_driver\n"
        "from core_gpu.memory import GpuMemory\n"
        "driver = open_driver()\n"
        "before = GpuMemory(driver.uuid).of(0)\n"
        "driver.capability(0), driver.name(0)\n"
        "assert not driver.in_use(0)\n"
        "driver.retain(0)\n"
        "assert driver.in_use(0)\n"
        "driver.release(0)\n"
        "assert not driver.in_use(0)\n"
    )
    subprocess.run([sys.executable, "-c", code], check=True)


def test_access_that_is_impossible_is_an_error_with_the_name_of_the_function(driver):
    context = driver.retain(0)
    try:
        with pytest.raises(DriverError, match=r"^cuCtxEnablePeerAccess: [a-z]"):
            driver.enable_access(context, context)
    finally:
        driver.release(0)


@pytest.fixture
def pools(driver):
    made = GpuPools(driver, pinned=1 << 20, sizes={0: 1 << 20}, limits={0: 16 << 20})
    made.open(0)
    yield made
    made.close()


def test_bytes_pass_through_the_pools(driver, pools):
    source, target, part = pools.on_host(5000), pools.on_host(5000), pools.on_gpu(0, 5000)
    source[:] = np.arange(5000) % 251
    target[:] = 0
    size = ctypes.c_size_t(5000)

    with driver.within(driver.retain(0)):
        driver.call("cuMemcpyHtoD_v2", c_uint64(part.ptr), c_void_p(source.ctypes.data), size)
        driver.call("cuMemcpyDtoH_v2", c_void_p(target.ctypes.data), c_uint64(part.ptr), size)
    driver.release(0)

    assert np.array_equal(source, target)
    assert pools.pinned_bytes() == (1 << 20, 2 * 5120)


def test_a_range_keeps_its_content_when_it_grows(driver, pools):
    found = pools.growable(0)
    first = found.memory(1000)
    target = np.zeros(1000, np.uint8)

    with driver.within(driver.retain(0)):
        driver.call("cuMemsetD8_v2", c_uint64(first.ptr), ctypes.c_ubyte(7), ctypes.c_size_t(1000))
        second = found.memory(10 << 20)
        last = c_uint64(second.ptr + (10 << 20) - 1000)
        driver.call("cuMemcpyDtoD_v2", last, c_uint64(first.ptr), ctypes.c_size_t(1000))
        driver.call("cuMemcpyDtoH_v2", c_void_p(target.ctypes.data), last, ctypes.c_size_t(1000))
    driver.release(0)

    assert second.ptr == first.ptr == found.address
    assert (target == 7).all()
    assert found.memory((16 << 20) + 1) is None


def test_memory_of_the_pools_is_given_back(driver, memory):
    context = driver.retain(0)
    before = memory.of(0).used
    made = GpuPools(driver, pinned=0, sizes={0: GIB}, limits={0: 2 * GIB})
    made.open(0)
    found = made.growable(0)
    kept = found.memory(GIB)
    assert memory.of(0).used - before > 1.9 * GIB

    made.close()
    del found, kept

    assert context and memory.of(0).used - before < 0.1 * GIB
    driver.release(0)


@pytest.mark.skipif(len(gpus()) < 2, reason="there is no second GPU")
def test_two_gpus_read_each_other(driver):
    from core_gpu.peers import Peers

    contexts = [driver.retain(number) for number in (0, 1)]
    peers = Peers(driver)
    peers.enable()
    assert all(contexts)
    assert peers.enabled == {(a, b) for a, b in ((0, 1), (1, 0)) if driver.can_access(a, b)}
    peers.close()


async def test_a_model_is_refused_while_another_one_takes_the_memory(
    start, repository, memory, states
):
    found = memory.of(0)
    limit = (found.used + GIB) / found.total
    backend = core.Backend(model=Takes, instance=Twice)
    server = await start(backend, repository(a=ON_GPU), model_load_gpu_limit={0: limit})
    repository(b=ON_GPU)

    with pytest.raises(CoreError, match=r"memory limit set for KIND_GPU 0 .* GiB are in use"):
        await server.manager.load("b", {})
    await server.manager.unload("a")
    await server.manager.load("b", {})

    assert (await states(server))["b"] == "READY"


async def test_a_gpu_is_used_from_its_own_capability_on(start, repository, driver, states):
    major, minor = driver.capability(0)
    backend = core.Backend(model=Takes, instance=Twice)
    own = {"min_supported_compute_capability": major + minor / 10}

    server = await start(backend, repository(m=ON_GPU), **own)

    assert (await states(server))["m"] == "READY"


async def test_a_gpu_below_the_minimum_is_not_used(start, repository, states):
    backend = core.Backend(instance=Twice)
    folder = repository(m=ON_GPU, auto="")

    server = await start(backend, folder, min_supported_compute_capability=99.0)

    assert "compatibility of 99.000000 are: none" in (await states(server))["m"]
    assert server.manager.resolve("auto").config.instance_group[0].kind == 2  # KIND_CPU
