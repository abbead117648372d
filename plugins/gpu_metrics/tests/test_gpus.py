"""Metrics of GPUs from a played NVML. It has the functions and errors of the real module."""

import logging
import threading

import core_gpu_metrics
import pynvml
import pytest
from core_gpu_metrics.gpus import Gpus, chosen_gpus
from played_nvml import PlayedNvml

from core import plugins
from core.control.metrics.watch import open_sources
from core.devices.visible import gpus
from core.options import Options, idle_flags, parse, usage

A, B = "GPU-aaaa-1", "GPU-bbbb-2"


class Clock:
    now = 100.0

    def __call__(self):
        return self.now


class Machine:
    """The GPUs of a test, a PlayedNvml, and the Gpus that reads them every tenth of a second."""

    def __init__(self, nvml, visible=(0, 1), **environment):
        self.nvml = nvml
        self.clock = Clock()
        self.gpus = Gpus(
            0, lambda: nvml, lambda: visible, environment=environment, clock=self.clock
        )

    def looks(self, count=1):
        """Start the thread if needed, and wait until it has read every GPU `count` times.

        Return (family, UUID) → value.
        """
        self.gpus.start(None)
        for _ in range(count + 1):  # the values of a reading are complete when the next one begins
            assert self.nvml.asked.acquire(timeout=30)
        return self.values()

    def values(self):
        return {
            (family.name, sample.labels["gpu_uuid"]): sample.value
            for family in self.gpus.families()
            for sample in family.samples
        }


@pytest.fixture
def machine():
    made = []

    def make(*uuids, **more):
        made.append(Machine(PlayedNvml(*uuids), **more))
        return made[-1]

    yield make
    for each in made:
        each.nvml.go_on.set()
        each.gpus.stop()


def test_values_of_a_gpu_have_the_units_of_the_names(machine):
    found = machine(A).looks()

    assert found == {
        ("nv_gpu_utilization", A): 0.4,
        ("nv_gpu_memory_total_bytes", A): 1000,
        ("nv_gpu_memory_used_bytes", A): 250,
        ("nv_gpu_power_usage", A): 65.5,
        ("nv_gpu_power_limit", A): 300,
        ("nv_energy_consumption", A): 0,
    }


def test_energy_is_counted_from_the_start(machine):
    one = machine(A)
    one.looks()

    one.nvml.gpus[A]["nvmlDeviceGetTotalEnergyConsumption"] = 5_002_500
    assert one.looks(2)["nv_energy_consumption", A] == 2.5

    # The driver was loaded again: it counts from 0.
    one.nvml.gpus[A]["nvmlDeviceGetTotalEnergyConsumption"] = 500
    assert one.looks(2)["nv_energy_consumption", A] == 3.0


def test_an_unsupported_value_is_skipped_and_not_read_again(machine):
    two = machine(A, B)
    two.nvml.gpus[A]["nvmlDeviceGetPowerUsage"] = pynvml.NVMLError(pynvml.NVML_ERROR_NOT_SUPPORTED)

    found = two.looks(3)

    assert ("nv_gpu_power_usage", A) not in found
    assert found["nv_gpu_power_usage", B] == 65.5
    calls = two.nvml.calls
    looks = calls.count("nvmlDeviceGetPowerManagementLimit") // 2
    assert calls.count("nvmlDeviceGetPowerUsage") <= looks + 2


def test_a_reading_that_fails_three_times_in_a_row_is_abandoned_with_a_warning(machine, caplog):
    one = machine(A)
    one.nvml.gpus[A]["nvmlDeviceGetPowerUsage"] = pynvml.NVMLError(pynvml.NVML_ERROR_UNKNOWN)

    with caplog.at_level(logging.WARNING, "core"):
        one.looks(6)

    told = [record.message for record in caplog.records]
    assert len(told) == 3
    assert all(text.startswith(f"no nv_gpu_power_usage of GPU {A}: Unknown Error") for text in told)
    assert told[-1].endswith("; it is not asked for any more")


def test_an_older_driver_has_one_form_of_memory_only(machine):
    one = machine(A)
    real = one.nvml._answer
    versions = []

    def answer(name, *arguments):
        if name == "nvmlDeviceGetMemoryInfo":
            versions.append(name)
            if len(versions) % 2:
                raise pynvml.NVMLError(pynvml.NVML_ERROR_FUNCTION_NOT_FOUND)
        return real(name, *arguments)

    one.nvml._answer = answer

    assert one.looks()["nv_gpu_memory_used_bytes", A] == 250


def test_a_hanging_driver_delays_no_scrape_and_its_old_values_expire(machine):
    one = machine(A)
    one.looks()

    one.nvml.go_on.clear()
    assert one.nvml.hangs.wait(30)
    one.clock.now += 9
    assert ("nv_gpu_utilization", A) in one.values()
    one.clock.now += 2
    assert one.values() == {}
    one.gpus.stop()  # does not wait for it either


def test_the_thread_ends_with_the_server(machine):
    one = machine(A)
    one.looks()

    one.gpus.stop()

    assert one.nvml.ended.wait(30)
    one.gpus.stop()


def test_without_a_gpu_no_thread_starts(machine):
    blind = machine(A, visible=())

    blind.gpus.start(None)

    assert blind.nvml.calls == []
    assert blind.values() == {}


def waiting_for_the_end():
    """Wait until the thread of each Gpus has ended, at most 30 s each."""
    for thread in threading.enumerate():
        if thread.name == "core-gpu-metrics":
            thread.join(30)


def test_without_its_module_there_is_a_warning(caplog):
    def absent():
        raise ImportError("no module")

    without = Gpus(0, absent, lambda: (0,))

    with caplog.at_level(logging.WARNING, "core"):
        without.start(None)
        waiting_for_the_end()

    assert [record.message for record in caplog.records] == [
        "no metrics of GPUs: NVML cannot start: no module"
    ]
    assert without.families() == []


def test_the_real_module_without_a_driver_is_a_warning(caplog):
    try:
        pynvml.nvmlInit()
    except pynvml.NVMLError as error:
        reason = str(error)
    else:
        pynvml.nvmlShutdown()
        pytest.skip("there is a driver")
    without = Gpus(0, visible=lambda: (0,))

    with caplog.at_level(logging.WARNING, "core"):
        without.start(None)
        waiting_for_the_end()

    assert [record.message for record in caplog.records] == [
        f"no metrics of GPUs: NVML cannot start: {reason}"
    ]


def test_a_number_of_a_gpu_is_that_of_frameworks(machine):
    one = machine(A, B, CUDA_VISIBLE_DEVICES="1")

    one.looks()

    assert [one.gpus.gpu_uuid(number) for number in (-1, 0, 1)] == [None, B, None]
    assert {uuid for _, uuid in one.values()} == {B}


@pytest.mark.parametrize(
    ("visible", "expected"),
    [
        (None, [A, B]),
        ("", []),
        ("1,0", [B, A]),
        ("1", [B]),
        ("0,7,1", [A]),
        ("-1", []),
        ("GPU-bbbb", [B]),
        ("GPU-", []),
        ("0,0", [A]),
        (f"{B}, 0", [B, A]),
    ],
)
def test_visible_gpus_follow_the_environment(visible, expected):
    assert chosen_gpus([A, B], visible) == expected


@pytest.mark.gpu
@pytest.mark.skipif(not gpus(), reason="this process sees no GPU")
def test_a_real_gpu_reports_its_memory():
    real = Gpus(0.1)
    real.start(None)
    try:
        for _ in range(300):
            found = {family.name: family.samples for family in real.families()}
            if found:
                break
            threading.Event().wait(0.1)
        total = found["nv_gpu_memory_total_bytes"][0]
        used = found["nv_gpu_memory_used_bytes"][0]
        assert 0 <= used.value <= total.value
        assert total.labels["gpu_uuid"].startswith("GPU-")
    finally:
        real.stop()


@pytest.fixture
def plugin():
    hooks = plugins.hooks()
    found = hooks.get_plugin("gpu_metrics")  # another test may have registered it
    if found is None:
        hooks.register(core_gpu_metrics, "gpu_metrics")
    yield
    if found is None:
        hooks.unregister(core_gpu_metrics)


def options(*flags):
    return parse(["--model-repository=/m", *flags], plugins.flags())


def sources(options):
    return [each for each in open_sources(options).values() if isinstance(each, Gpus)]


@pytest.mark.parametrize(
    ("flags", "count"), [((), 1), (("--allow-gpu-metrics=false",), 0), (("--allow-gpu=on",), 1)]
)
def test_its_flag_takes_the_place_of_the_one_without_effect(plugin, flags, count):
    found = options(*flags)

    assert len(sources(found)) == count
    assert idle_flags(found) == []


def test_help_has_its_flag_once(plugin):
    assert usage(plugins.flags()).count("--allow-gpu-metrics") == 1


def test_a_program_turns_it_off_by_the_option(plugin):
    assert sources(Options.defaults(allow_gpu_metrics=False)) == []
    assert len(sources(Options.defaults())) == 1
