"""--min-supported-compute-capability on a played machine."""

import logging

import pytest
from core_gpu.capability import supported
from core_gpu.driver import CudaDriver
from core_gpu.options import GpuOptions
from core_gpu.server_gpus import open_gpus
from played_machine import Gpu, PlayedCuda

ON_GPU = "instance_group { kind: KIND_GPU }"


@pytest.fixture
def mixed():
    """GPUs of the capabilities 5.2, 8.6 and 12.1."""
    return [Gpu(0, (5, 2)), Gpu(1, (8, 6)), Gpu(2, (12, 1))]


@pytest.mark.parametrize(
    ("least", "expected"), [(0.0, (0, 1, 2)), (6.0, (1, 2)), (8.6, (1, 2)), (8.7, (2,)), (13.0, ())]
)
def test_gpus_below_the_minimum_are_left_out(mixed, least, expected):
    assert supported(range(3), least, CudaDriver(PlayedCuda(mixed))) == expected


def test_the_log_names_the_gpus_that_are_left_out(mixed, caplog):
    with caplog.at_level(logging.WARNING, "core"):
        supported(range(3), 6.0, CudaDriver(PlayedCuda(mixed)))

    assert [record.message for record in caplog.records] == [
        "no instance is placed on GPU 0 (Played GPU): its compute capability is 5.2, "
        "--min-supported-compute-capability is 6.0"
    ]


async def test_instances_are_placed_on_the_other_gpus(serve, repository, mixed):
    server = await serve(mixed, repository(m=ON_GPU, auto=""))

    for name in ("m", "auto"):
        assert list(server.manager.resolve(name).config.instance_group[0].gpus) == [1, 2]


async def test_without_a_supported_gpu_instances_are_on_the_cpu(serve, repository, mixed, states):
    options = {"min_supported_compute_capability": 13.0}
    server = await serve(mixed, repository(auto="", m=ON_GPU), **options)

    assert list(server.manager.resolve("auto").config.instance_group[0].gpus) == []
    assert "has kind KIND_GPU but no GPUs are available" in (await states(server))["m"]


async def test_a_model_that_names_an_unsupported_gpu_is_refused(serve, repository, mixed, states):
    group = "instance_group { kind: KIND_GPU gpus: [ 1 ] }"
    options = {"min_supported_compute_capability": 9.0}
    server = await serve(mixed, repository(m=group), **options)

    assert (
        "specifies invalid or unsupported gpu id 1. GPUs with at least the minimum required CUDA compute "
        "compatibility of 9.000000 are: 2" in (await states(server))["m"]
    )


def test_a_driver_that_fails_is_a_warning(mixed, caplog):
    cuda = PlayedCuda(mixed)
    cuda.statuses["cuInit"] = 100

    with caplog.at_level(logging.WARNING, "core"):
        assert open_gpus(GpuOptions(), lambda: (0, 1, 2), lambda: CudaDriver(cuda)) is None

    assert [record.message for record in caplog.records] == [
        "the options about GPUs have no effect: the driver fails: cuInit: no CUDA-capable device is "
        "detected"
    ]


def test_without_gpus_the_driver_is_not_started():
    def fail():
        raise AssertionError("the driver is started")

    assert open_gpus(GpuOptions(), tuple, fail) is None
