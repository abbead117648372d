"""--model-load-gpu-limit on a played machine."""

import asyncio
import logging

import pynvml
import pytest
from core_gpu.driver import CudaDriver
from core_gpu.memory import GpuMemory
from core_gpu.options import GpuOptions
from core_gpu.server_gpus import open_gpus
from played_machine import Gpu, PlayedCuda, PlayedNvml

from core.errors import CoreError, Kind
from core.options import Options

GIB = 1 << 30
ON_GPU = "instance_group { kind: KIND_GPU gpus: [ %s ] }"


async def test_a_model_is_refused_on_a_gpu_beyond_its_limit(serve, repository, states):
    gpus = [Gpu(0, used=60 * GIB, total=80 * GIB)]

    server = await serve(gpus, repository(m=ON_GPU % 0), model_load_gpu_limit={0: 0.5})

    assert (await states(server))["m"] == (
        "Unavailable: can not create model 'm': memory limit set for KIND_GPU 0 has exceeded, model "
        "loading is rejected: 60.00 of 80.00 GiB are in use (75.0%), --model-load-gpu-limit permits 50.0%; "
        "unload another model, or raise the limit"
    )


async def test_a_model_is_loaded_up_to_the_limit(serve, repository, states):
    gpus = [Gpu(0, used=500)]

    server = await serve(gpus, repository(m=ON_GPU % 0), model_load_gpu_limit={0: 0.5})

    assert (await states(server))["m"] == "READY"


async def test_memory_of_an_unloaded_model_makes_room(serve, repository, states):
    gpus = [Gpu(0, used=450)]
    server = await serve(gpus, repository(a=ON_GPU % 0), model_load_gpu_limit={0: 0.5})
    repository(b=ON_GPU % 0)

    with pytest.raises(CoreError, match="memory limit set for KIND_GPU 0"):
        await server.manager.load("b", {})
    await server.manager.unload("a")  # its memory is free a moment later
    while gpus[0].used > 450:
        await asyncio.sleep(0.001)
    await server.manager.load("b", {})

    assert (await states(server))["b"] == "READY"


@pytest.mark.parametrize(
    "groups",
    ["instance_group { kind: KIND_CPU }", ON_GPU % 1, "instance_group { kind: KIND_MODEL }"],
)
async def test_other_devices_have_no_limit(serve, repository, states, groups):
    gpus = [Gpu(0, used=999), Gpu(1, used=999)]

    server = await serve(gpus, repository(m=groups), model_load_gpu_limit={0: 0.5})

    assert (await states(server))["m"] == "READY"


async def test_every_gpu_of_a_model_must_be_below_its_limit(serve, repository, states):
    gpus = [Gpu(0, used=100), Gpu(1, used=999)]

    limits = {0: 0.5, 1: 0.9}
    server = await serve(gpus, repository(m=ON_GPU % "0, 1"), model_load_gpu_limit=limits)

    assert "KIND_GPU 1 has exceeded" in (await states(server))["m"]


async def test_memory_that_cannot_be_read_fails_the_load(serve, repository, states):
    gpus = [Gpu(0)]
    gpus[0].fails = pynvml.NVMLError(pynvml.NVML_ERROR_GPU_IS_LOST)

    server = await serve(gpus, repository(m=ON_GPU % 0), model_load_gpu_limit={0: 0.5})

    found = (await states(server))["m"]
    assert found == "Unavailable: the memory of GPU 0 cannot be read: GPU is lost"


@pytest.mark.parametrize("kind", [{}, {"old": True}])
def test_a_part_of_a_gpu_and_an_older_driver_have_a_memory_too(kind):
    gpu = Gpu(0, used=30, total=40)
    nvml = PlayedNvml([gpu], parts=[gpu.uuid], **kind)

    memory = GpuMemory(CudaDriver(PlayedCuda([gpu])).uuid, lambda: nvml)

    assert memory.of(0) == (30, 40) and memory.of(0).share == 0.75


def test_a_limit_without_nvml_stops_the_start():
    gpus = [Gpu(0)]
    broken = pynvml.NVMLError(pynvml.NVML_ERROR_LIBRARY_NOT_FOUND)
    nvml = PlayedNvml(gpus, broken=broken)

    with pytest.raises(CoreError, match="--model-load-gpu-limit needs NVML") as error:
        open_gpus(
            GpuOptions(model_load_gpu_limit={0: 0.5}),
            lambda: (0,),
            lambda: CudaDriver(PlayedCuda(gpus)),
            lambda driver: GpuMemory(driver.uuid, lambda: nvml),
        )
    assert error.value.kind is Kind.INTERNAL and "utility" in error.value.message


@pytest.mark.parametrize(("gpus", "there"), [([], "none"), ([Gpu(0), Gpu(1)], "0, 1")])
def test_a_limit_of_a_gpu_that_is_not_there_is_a_warning(caplog, gpus, there):
    with caplog.at_level(logging.WARNING, "core"):
        open_gpus(
            GpuOptions(model_load_gpu_limit={7: 0.5}),
            lambda: range(len(gpus)),
            lambda: CudaDriver(PlayedCuda(gpus)),
        )

    assert [record.message for record in caplog.records] == [
        f"--model-load-gpu-limit names GPU 7, which this process does not see; it sees: {there}"
    ]


@pytest.mark.parametrize("limit", [(0, 50.0), (0, -0.1), (0, float("nan")), (-1, 0.5)])
def test_a_limit_is_a_fraction_of_a_gpu(limit):
    found = Options.defaults(GpuOptions(model_load_gpu_limit=dict([limit])))

    with pytest.raises(CoreError, match="expected the number of a GPU and a fraction from 0 to 1"):
        GpuOptions.of(found).check(found)
