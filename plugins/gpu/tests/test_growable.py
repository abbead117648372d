"""Ranges of addresses that get more memory, on a played machine."""

import ctypes
import logging

import numpy as np
import pytest
from core_gpu.driver import CudaDriver, DriverError
from core_gpu.gpu_pools import GpuPools
from core_gpu.growable import GrowableRange
from played_machine import Gpu, PlayedCuda
from played_memory import GRAIN

LIMIT = 5 * GRAIN + 1


@pytest.fixture
def cuda():
    return PlayedCuda([Gpu(0), Gpu(1)])


@pytest.fixture
def grown(cuda):
    """A range of LIMIT bytes on GPU 1."""
    return GrowableRange(CudaDriver(cuda), 1, LIMIT)


def bytes_of(memory):
    (size,) = memory.__cuda_array_interface__["shape"]
    return np.frombuffer((ctypes.c_ubyte * size).from_address(memory.ptr), np.uint8)


def test_addresses_are_reserved_without_memory(cuda, grown):
    assert grown.address in cuda.ranges and cuda.mapped == {}
    assert cuda.room == 1 << 30


def test_it_grows_in_place_and_keeps_what_it_has(cuda, grown):
    before = grown.memory(100)
    bytes_of(before)[:] = 9

    after = grown.memory(2 * GRAIN + 5)

    assert after.ptr == before.ptr == grown.address
    assert (bytes_of(after)[:100] == 9).all()
    assert cuda.mapped == {grown.address: GRAIN, grown.address + GRAIN: 2 * GRAIN}
    assert cuda.open == set(cuda.mapped) and cuda.handles == {}


def test_a_smaller_state_needs_no_call(cuda, grown):
    grown.memory(2 * GRAIN)
    cuda.calls.clear()

    assert grown.memory(GRAIN).__cuda_array_interface__["shape"] == (GRAIN,)
    assert cuda.calls == []


def test_it_has_room_for_its_limit_and_not_for_more(grown):
    assert grown.memory(LIMIT) is not None
    assert grown.memory(LIMIT + 1) is None


def test_memory_keeps_the_range_and_all_is_given_back_with_it(cuda):
    memory = GrowableRange(CudaDriver(cuda), 1, LIMIT).memory(3 * GRAIN)
    assert len(cuda.ranges) == 1

    del memory

    assert cuda.ranges == cuda.mapped == {} and cuda.room == 1 << 30
    assert cuda.gpus[1].retained == 0 and cuda.stack == []


@pytest.mark.parametrize("function", ["cuMemCreate", "cuMemMap", "cuMemSetAccess"])
def test_a_gpu_without_memory_changes_nothing(cuda, grown, function):
    grown.memory(GRAIN)
    left = cuda.room
    cuda.statuses[function] = 2

    assert grown.memory(2 * GRAIN) is None
    cuda.statuses.clear()

    assert cuda.room == left and cuda.mapped == {grown.address: GRAIN} and cuda.handles == {}
    assert grown.memory(2 * GRAIN) is not None


def test_an_address_range_that_cannot_be_reserved_is_an_error(cuda):
    cuda.statuses["cuMemAddressReserve"] = 2

    with pytest.raises(DriverError, match="cuMemAddressReserve: out of memory"):
        GrowableRange(CudaDriver(cuda), 0, LIMIT)

    assert cuda.gpus[0].retained == 0 and cuda.stack == []


def test_a_driver_without_virtual_memory_is_one_warning(cuda, caplog):
    cuda.statuses["cuMemGetAllocationGranularity"] = 100
    own = GpuPools(CudaDriver(cuda), pinned=0, sizes={}, limits={0: LIMIT})

    with caplog.at_level(logging.WARNING, "core"):
        assert own.growable(0) is own.growable(0) is None

    (told,) = [record.message for record in caplog.records]
    assert told.startswith(
        "states on GPU 0 do not grow in place: cuMemGetAllocationGranularity: no"
    )


def test_each_range_has_the_limit_of_its_gpu(cuda):
    own = GpuPools(CudaDriver(cuda), pinned=0, sizes={}, limits={0: LIMIT, 1: 7})

    first, second, other = own.growable(0), own.growable(0), own.growable(1)

    assert first.address != second.address
    assert [each.limit for each in (first, second, other)] == [LIMIT, LIMIT, 7]
    assert own.growable(2) is None
