"""The pools of a server on a played machine."""

import logging

import pytest
from core_gpu.driver import CudaDriver
from core_gpu.gpu_pools import GpuPools
from core_gpu.options import GpuOptions
from core_gpu.server_gpus import open_gpus
from played_machine import Gpu, PlayedCuda

from core.devices import pools
from core.errors import CoreError
from core.options import Options

MIB = 1 << 20


@pytest.fixture
def cuda():
    return PlayedCuda([Gpu(0), Gpu(1)])


@pytest.fixture
def opened(cuda):
    """opened(pinned=…, sizes=…, limits=…): return GpuPools of the machine `cuda`."""

    def make(pinned=MIB, sizes=None, limits=None):
        sizes = {0: MIB, 1: MIB} if sizes is None else sizes
        limits = {0: MIB, 1: MIB} if limits is None else limits
        return GpuPools(CudaDriver(cuda), pinned=pinned, sizes=sizes, limits=limits)

    return make


def test_nothing_is_allocated_before_an_instance_opens_on_a_gpu(cuda, opened):
    own = opened()

    assert own.on_host(10) is None and own.on_gpu(0, 10) is None
    assert own.pinned_bytes() == (0, 0)
    assert [each.retained for each in cuda.gpus] == [0, 0]


def test_each_pool_is_allocated_once(cuda, opened):
    own = opened()

    own.open(1)
    own.open(1)
    assert [each.retained for each in cuda.gpus] == [0, 2]
    own.open(0)

    assert sorted(array.size for array in cuda.blocks.values()) == [MIB] * 3
    assert cuda.calls.count("cuMemHostAlloc") == 1


def test_memory_of_the_host_is_ordinary_when_the_pool_is_full(opened):
    own = opened()
    own.open(0)

    first = own.on_host(MIB)
    second = own.on_host(10)
    first[:] = second[:] = 3

    assert (first.size, second.size) == (MIB, 10)
    assert own.pinned_bytes() == (MIB, MIB)
    del first
    assert own.pinned_bytes() == (MIB, 0)


def test_memory_of_a_gpu_is_what_libraries_of_gpus_use(cuda, opened):
    own = opened()
    own.open(0)

    part = own.on_gpu(0, 1000)

    described = part.__cuda_array_interface__
    assert described["data"] == (part.ptr, False) and part.ptr in cuda.blocks
    assert (described["shape"], described["typestr"]) == ((1000,), "|u1")
    assert own.on_gpu(0, MIB) is None and own.on_gpu(1, 10) is None
    del part
    assert own.on_gpu(0, MIB) is not None


def test_memory_in_use_outlives_the_server(cuda, opened):
    own = opened()
    own.open(0)
    array, part = own.on_host(10), own.on_gpu(0, 10)

    own.close()
    array[:] = 5
    assert len(cuda.blocks) == 2 and own.on_host(10) is None and own.on_gpu(0, 10) is None
    del array, part

    assert cuda.blocks == {} and cuda.stack == []
    assert [each.retained for each in cuda.gpus] == [0, 0]


def test_a_server_without_pools_uses_no_context(cuda, opened):
    own = opened(pinned=0, sizes={0: 0, 1: 0})

    own.open(0)

    assert own.on_host(10) is None and own.on_gpu(0, 10) is None
    assert cuda.blocks == {} and cuda.gpus[0].retained == 0


@pytest.mark.parametrize(
    ("function", "text"),
    [
        (
            "cuMemHostAlloc",
            "no pool of pinned memory (--pinned-memory-pool-byte-size=1048576)",
        ),
        ("cuMemAlloc_v2", "no pool of memory of GPU 0 (--cuda-memory-pool-byte-size=0:1048576)"),
    ],
)
def test_a_pool_that_cannot_be_allocated_is_one_warning(cuda, opened, caplog, function, text):
    cuda.statuses[function] = 2
    own = opened()

    with caplog.at_level(logging.WARNING, "core"):
        own.open(0)
        own.open(0)

    (told,) = [record.message for record in caplog.records]
    assert told.startswith(f"{text}: {function}: out of memory")
    assert cuda.stack == [] and cuda.gpus[0].retained == 1  # that of the other pool


# options --------------------------------------------------------------------------------------


def opened_with(cuda, **values):
    found = open_gpus(
        GpuOptions(**values),
        visible=lambda: tuple(range(len(cuda.gpus))),
        driver=lambda: CudaDriver(cuda),
    )
    found.pools.open(0)
    found.close()
    return sorted(size for size in cuda.sizes)


def test_the_defaults_are_those_of_triton(cuda):
    assert opened_with(cuda) == [64 * MIB, 256 * MIB]
    assert cuda.blocks == {}


def test_sizes_are_those_of_the_options(cuda):
    found = opened_with(
        cuda, pinned_memory_pool_byte_size=3 * MIB, cuda_memory_pool_byte_size={0: MIB}
    )

    assert found == [MIB, 3 * MIB]


def test_a_gpu_that_is_not_there_is_named(cuda, caplog):
    with caplog.at_level(logging.WARNING, "core"):
        opened_with(cuda, cuda_memory_pool_byte_size={7: 1}, cuda_virtual_address_size={5: 1})

    assert [record.message for record in caplog.records] == [
        "--cuda-memory-pool-byte-size names GPU 7, which this process does not see; it sees: 0, 1",
        "--cuda-virtual-address-size names GPU 5, which this process does not see; it sees: 0, 1",
    ]


@pytest.mark.parametrize(
    ("values", "text"),
    [
        (
            {"cuda_memory_pool_byte_size": {0: -1}},
            "--cuda-memory-pool-byte-size=0:-1: expected the",
        ),
        (
            {"cuda_memory_pool_byte_size": {-2: 1}},
            "--cuda-memory-pool-byte-size=-2:1: expected the",
        ),
        ({"cuda_virtual_address_size": {0: 0}}, "--cuda-virtual-address-size=0:0: expected the"),
    ],
)
def test_a_wrong_size_is_refused(values, text):
    with pytest.raises(CoreError, match=text):
        GpuOptions(**values).check(Options.defaults())


async def test_metrics_show_the_pool_while_the_server_runs(serve, repository):
    server = await serve([Gpu(0)], repository(m=""), pinned_memory_pool_byte_size=MIB)
    own = pools.current()
    own.open(0)
    array = own.on_host(1000)

    found = {
        family.name: family.samples[0].value
        for family in server.control.health.metrics_here()
        if family.name.startswith("nv_pinned")
    }

    assert found == {
        "nv_pinned_memory_pool_total_bytes": MIB,
        "nv_pinned_memory_pool_used_bytes": 1024,
    }
    assert array.size == 1000
