"""Instances run on the device of their instance group.

Tests on a GPU have the mark `gpu`, and are skipped if this process sees no GPU.
"""

from __future__ import annotations

import gc
import importlib
import importlib.util
import warnings
from typing import Any

import pytest

from core.backend import Device
from core.devices.visible import gpus
from core_testing import leftovers
from core_testing.call_log import CallLog
from core_testing.example import Example
from core_testing.kit import Kit, Serve

GROWTH = 1 << 20  # bytes of GPU memory that a load may keep

with warnings.catch_warnings():
    # A test module that names core_testing.plugin, where the mark is registered, has imported this before.
    warnings.simplefilter("ignore", pytest.PytestUnknownMarkWarning)
    GPU = pytest.mark.gpu


class Devices(Kit):
    def test_an_instance_of_a_cpu_group_is_on_the_cpu(
        self, calls: CallLog, serve: Serve, example: Example
    ) -> None:
        self.needs("cpu")
        served = serve(example, instances=2)
        served.ask(example.inputs)

        for each in calls.instances():
            assert each.device == Device("CPU"), (
                f"an instance of KIND_CPU says that it is on {each.device}: core sets `device`, "
                "a backend reads it"
            )

    @GPU
    def test_an_instance_of_a_gpu_group_answers_as_on_the_cpu(
        self, calls: CallLog, serve: Serve, example: Example
    ) -> None:
        self._needs_gpu()
        served = serve(example, gpu=True)

        example.check(served.answer(example.inputs))

        assert [each.device for each in calls.instances()] == [Device("GPU")]

    @GPU
    def test_two_instances_share_a_gpu(self, serve: Serve, example: Example) -> None:
        self._needs_gpu()
        served = serve(example, instances=2, gpu=True)

        for answer in served.together([example.inputs] * 20):
            example.check(answer)

    @GPU
    def test_memory_of_a_gpu_is_free_again_after_the_unload(
        self, serve: Serve, example: Example
    ) -> None:
        self._needs_gpu()
        free_bytes = _free_bytes()
        served = serve(example, gpu=True)
        served.ask(example.inputs)  # the framework takes its memory of the process now
        served.unload()
        before = free_bytes()

        for _ in range(3):
            served.load()
            served.ask(example.inputs)
            served.unload()
        gc.collect()

        assert leftovers.settles(lambda: free_bytes() > before - GROWTH)

    def _needs_gpu(self) -> None:
        self.needs("gpu")
        if not gpus():
            pytest.skip("this process sees no GPU")


def _free_bytes() -> Any:
    """Return a function that gives the free bytes of GPU 0.

    Skips the test if neither torch nor cupy is installed, or if torch is installed but cannot use a GPU.
    """
    name = next((each for each in ("torch", "cupy") if importlib.util.find_spec(each)), None)
    if name is None:
        pytest.skip("neither torch nor cupy is installed, to ask for the memory of a GPU")
    library: Any = importlib.import_module(name)
    if name == "cupy":
        return lambda: int(library.cuda.Device(0).mem_info[0])
    if not library.cuda.is_available():
        pytest.skip("this torch cannot use a GPU")
    return lambda: int(library.cuda.mem_get_info(0)[0])
