"""The figures of the kernel, from a folder in the form of /proc, and those of a simulated NVML."""

import mmap
import os
from pathlib import Path
from types import SimpleNamespace

import pytest
from core_memory_budget.completed import Completed
from core_memory_budget.measure import Meter, Reading
from core_memory_budget.measuring import Measured, _compare

from core import config as configuration

MIB = 1 << 20


@pytest.fixture
def proc(tmp_path):
    (tmp_path / "self").mkdir()
    (tmp_path / "self" / "status").write_text(
        "Name:\tcore\nVmHWM:\t  9000 kB\nVmRSS:\t  7000 kB\nRssAnon:\t  4000 kB\n"
        "RssFile:\t  2000 kB\nRssShmem:\t  1000 kB\n"
    )
    (tmp_path / "7").mkdir()
    (tmp_path / "7" / "smaps_rollup").write_text(
        "00-ff ---p 0 00:00 0 [rollup]\nRss: 90 kB\nPss: 50 kB\n"
    )
    return tmp_path


class Nvml:
    """Two GPUs, of 80 and 40 bytes."""

    def __init__(self):
        self.used = [10, 5]
        self.processes = [[], []]

    def nvmlInit(self):
        pass

    def nvmlDeviceGetCount(self):
        return 2

    def nvmlDeviceGetHandleByIndex(self, index):
        return index

    def nvmlDeviceGetUUID(self, handle):
        return f"GPU-{'ab'[handle]}"

    def nvmlDeviceGetComputeRunningProcesses(self, handle):
        return self.processes[handle]

    def nvmlDeviceGetMemoryInfo(self, handle):
        return SimpleNamespace(total=[80, 40][handle], used=self.used[handle])


def test_private_memory_counts_and_libraries_do_not(proc):
    meter = Meter(proc, visible=lambda: ())

    assert meter.now() == Reading(5000 * 1024, 7000 * 1024, {})
    assert meter.peak() == 9000 * 1024
    assert meter.of_process(7) == 50 * 1024
    assert meter.of_process(8) == 0


def test_files_that_are_mapped_from_the_folder_of_the_model_count_in_full(proc, tmp_path):
    folder = (tmp_path / "models" / "m").resolve()
    (proc / "self" / "maps").write_text(
        f"1000-1a000 r--p 0 08:01 12                        {folder}/1/weights of m.gguf\n"
        f"20000-21c00 r--p 0 08:01 13                       {folder}er/1/weights.gguf\n"
        "30000-32400 rw-p 0 00:00 0 \n"
        f"7f0000000000-7f0000005000 r--p 19000 08:01 12     {folder}/1/weights of m.gguf\n"
    )

    assert Meter(proc, visible=lambda: ()).mapped(folder) == 120 * 1024


@pytest.mark.skipif(not Path("/proc/self/maps").exists(), reason="without proc(5)")
def test_a_file_that_two_instances_have_mapped_counts_once(tmp_path):
    (tmp_path / "weights.bin").write_bytes(bytes(8 * MIB))
    meter = Meter(visible=lambda: ())

    with (tmp_path / "weights.bin").open("rb") as file:
        first = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        second = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
    with first, second:
        assert meter.mapped(tmp_path) == 8 * MIB

    assert meter.mapped(tmp_path) == 0


@pytest.mark.parametrize(
    ("chosen", "expected"),
    [(None, [10, 5]), ("1,0", [5, 10]), ("GPU-b", [5]), ("", [])],
)
def test_gpus_are_numbered_as_frameworks_see_them(proc, chosen, expected):
    environment = {} if chosen is None else {"CUDA_VISIBLE_DEVICES": chosen}

    meter = Meter(proc, Nvml, lambda: (0, 1), environment)

    assert meter.now().gpus == {f"gpu{i}": used for i, used in enumerate(expected)}


def test_a_driver_that_does_not_start_is_no_error(proc, caplog):
    def broken():
        raise OSError("no driver")

    assert Meter(proc, broken, lambda: (0,)).now().gpus == {}
    assert "NVML cannot start: no driver" in caplog.text


def test_a_gpu_that_cannot_be_read_is_left_out_with_one_warning(proc, caplog):
    nvml = Nvml()
    read = nvml.nvmlDeviceGetMemoryInfo
    nvml.nvmlDeviceGetMemoryInfo = lambda handle: read(handle) if handle else 1 / 0

    meter = Meter(proc, lambda: nvml, lambda: (0, 1), {})

    assert meter.now().gpus == {"gpu1": 5}
    assert meter.now().gpus == {"gpu1": 5}
    assert meter.totals()["gpu1"] == 40
    assert [each.levelname for each in caplog.records].count("WARNING") == 1


def test_a_gpu_without_a_reading_before_the_load_does_not_count():
    found = Measured()

    _compare(Reading(0, 0), Reading(0, 0, {"gpu0": 30 * MIB}), 0, 0, found, alone=True)

    assert found.kept == {"host": 0}
    assert (found.known, found.unknown) == ({"host"}, {"gpu0"})


def process(pid, used):
    return SimpleNamespace(pid=pid, usedGpuMemory=used)


def test_the_bytes_of_this_process_and_its_children_on_a_gpu_are_told_apart_from_others(proc):
    for pid, parent in ((70, os.getpid()), (71, 70), (80, 1), (1, 0)):
        (proc / str(pid)).mkdir()
        (proc / str(pid) / "status").write_text(f"Name:\tx\nPPid:\t{parent}\n")
    nvml = Nvml()
    nvml.processes[0] = [process(os.getpid(), 5), process(71, 3), process(80, 90), process(999, 9)]
    nvml.processes[1] = [process(80, 90)]

    assert Meter(proc, lambda: nvml, lambda: (0, 1), {}).now().own_gpus == {"gpu0": 8}


def test_a_driver_that_does_not_tell_the_bytes_of_processes_tells_nothing(proc):
    nvml = Nvml()
    nvml.processes[0] = [process(os.getpid(), None)]
    del nvml.processes[1]  # an error of the driver

    meter = Meter(proc, lambda: nvml, lambda: (0, 1), {})

    assert meter.now().own_gpus == {}
    assert meter.now().untold == {"gpu0", "gpu1"}
    assert meter.now().gpus == {"gpu0": 10, "gpu1": 5}


def compared(before, after, alone=False):
    """What a load took on gpu0 by two readings; None if that is not known."""
    found = Measured(exact=True)
    _compare(before, after, 0, 0, found, alone)
    assert found.exact
    assert "host" in found.known
    assert ("gpu0" in found.known) != ("gpu0" in found.unknown)
    return found.kept.get("gpu0", 0) if "gpu0" in found.known else None


def test_two_workers_that_load_at_once_do_not_count_the_bytes_of_each_other():
    before = Reading(0, 0, {"gpu0": 100 * MIB})
    after = Reading(0, 0, {"gpu0": 170 * MIB}, {"gpu0": 30 * MIB})

    assert compared(before, after) == 30 * MIB


def test_with_workers_a_change_of_all_processes_together_is_no_measurement():
    before, after = Reading(0, 0, {"gpu0": 100 * MIB}), Reading(0, 0, {"gpu0": 170 * MIB})

    assert compared(before, after) is None
    assert compared(before, after, alone=True) == 70 * MIB
    assert compared(before, before) == 0


@pytest.mark.parametrize("call", ["nvmlDeviceGetComputeRunningProcesses", "no bytes"])
@pytest.mark.parametrize("moment", ["before", "after"])
def test_one_failed_call_of_nvml_does_not_make_the_whole_process_one_model(proc, call, moment):
    nvml = Nvml()
    meter = Meter(proc, lambda: nvml, lambda: (0, 1), {})

    def reading(used, own, fails):
        nvml.used = [used, 5]
        nvml.processes = [[process(os.getpid(), own)], []]
        if fails and call == "no bytes":
            nvml.processes[0] = [process(os.getpid(), None)]
        elif fails:
            del nvml.processes[:]
        return meter.now()

    before = reading(600 * MIB, 500 * MIB, moment == "before")
    after = reading(630 * MIB, 530 * MIB, moment == "after")

    assert compared(before, after) is None
    assert compared(before, after, alone=True) == 30 * MIB


def test_a_gpu_that_nvml_cannot_read_after_the_load_has_no_measurement(proc):
    nvml = Nvml()
    nvml.processes[0] = [process(os.getpid(), 100 * MIB)]
    meter = Meter(proc, lambda: nvml, lambda: (0, 1), {})

    before = meter.now()
    nvml.processes = []
    nvml.nvmlDeviceGetMemoryInfo = lambda handle: 1 / 0

    assert compared(before, meter.now(), alone=True) is None


def test_without_proc_nothing_is_measured(tmp_path):
    assert not Meter(tmp_path, visible=lambda: ()).works


def test_what_a_load_takes_is_the_difference_on_each_device():
    found = Measured()

    _compare(
        Reading(100 * MIB, 200 * MIB, {"gpu0": 0, "gpu1": 5}),
        Reading(110 * MIB, 210 * MIB, {"gpu0": 30 * MIB, "gpu1": 6}),
        peak=225 * MIB,
        mapped=MIB,
        result=found,
        alone=True,
    )

    assert found.kept == {"host": 11 * MIB, "gpu0": 30 * MIB}
    assert found.peak == {"host": 26 * MIB, "gpu0": 30 * MIB}


def test_a_completed_configuration_is_used_again_until_the_file_or_the_configuration_changes(
    tmp_path,
):
    file, kept = tmp_path / "model.onnx", Completed()
    file.write_bytes(b"1")
    given = configuration.parse_text('name: "m"', "test")
    done = configuration.parse_text('name: "m" max_batch_size: 4', "test")

    assert kept.find(given, tmp_path) is None
    kept.learn(SimpleNamespace(path=tmp_path, config=done))
    (tmp_path / "__pycache__").mkdir()  # Python writes it while it loads a model
    assert kept.find(given, tmp_path) == done
    assert kept.find(configuration.parse_text('name: "m" backend: "b"', "test"), tmp_path) is None
    os.utime(file, ns=(1, 1))
    assert kept.find(given, tmp_path) is None


def test_the_oldest_configurations_are_dropped(tmp_path, monkeypatch):
    monkeypatch.setattr("core_memory_budget.completed.MOST", 2)
    kept, given = Completed(), configuration.parse_text('name: "m"', "test")

    for name in "abc":
        assert kept.find(given, tmp_path / name) is None
    for name in "abc":
        kept.learn(SimpleNamespace(path=tmp_path / name, config=given))

    assert [kept.find(given, tmp_path / name) is not None for name in "abc"] == [False, True, True]
