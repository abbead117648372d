"""Gpus: metrics of the GPUs, which a thread reads from the driver by NVML.

A scrape takes the last values of the thread, so a driver that fails or hangs delays no request; values that
are too old are left out. Names, units and the number of attempts are those of Triton.
"""

from __future__ import annotations

import asyncio
import importlib
import logging
import os
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from core.devices.visible import gpus
from core.telemetry.families import Family, Sample
from core.telemetry.metrics.catalog import Entry
from core.telemetry.metrics.source import MetricSource

logger = logging.getLogger("core")

PATIENCE = 3  # after as many failures of one reading in a row, it is not read again
_OLD_INTERVALS, _OLD_S = 5, 10.0  # values are exposed for the longer of both

Values = dict[str, dict[str, float]]  # family → GPU → value

_LABELS, _GIVEN = ("gpu_uuid",), "with GPUs"
_ENTRIES = [
    *(
        Entry(f"nv_gpu_{name}", "gauge", text, _LABELS, _GIVEN, "first")
        for name, text in (
            ("utilization", "GPU utilization rate [0.0 - 1.0)"),
            ("memory_total_bytes", "GPU total memory, in bytes"),
            ("memory_used_bytes", "GPU used memory, in bytes"),
            ("power_usage", "GPU power usage in watts"),
            ("power_limit", "GPU power management limit in watts"),
        )
    ),
    Entry(
        "nv_energy_consumption",
        "counter",
        "GPU energy consumption in joules since the Triton Server started",
        _LABELS,
        _GIVEN,
        "largest",
    ),
]


class Gpus(MetricSource):
    """Metrics of the GPUs that this process sees. Event loop only, except for `_ask` and `_open`.

    interval_s    seconds between two readings of the thread, at least 0.1
    import_nvml   returns the module `pynvml`
    visible       returns the numbers of the GPUs that frameworks see, as core.devices.visible.gpus
    environment   environment variables of the process
    clock         returns monotonic seconds
    """

    catalog = {"GPUs (plugin `core-gpu-metrics`)": _ENTRIES}

    def __init__(
        self,
        interval_s: float,
        import_nvml: Callable[[], Any] = lambda: importlib.import_module("pynvml"),
        visible: Callable[[], tuple[int, ...]] = gpus,
        environment: Mapping[str, str] = os.environ,
        clock: Callable[[], float] = time.monotonic,
    ):
        self._interval_s = max(interval_s, 0.1)
        self._import_nvml = import_nvml
        self._visible = visible
        self._environment = environment
        self._clock = clock
        self._end: threading.Event | None = None  # of the thread
        # The thread replaces both as a whole.
        self._found: tuple[float, Values] = (float("-inf"), {})
        self._uuids: tuple[str, ...] = ()

    def start(self, loop: asyncio.AbstractEventLoop) -> None:
        """Start the thread if this process sees a GPU, and unless it runs already."""
        if self._end is None and self._visible():
            self._end = threading.Event()
            threading.Thread(
                target=self._ask, args=(self._end,), name="core-gpu-metrics", daemon=True
            ).start()

    def stop(self) -> None:
        """Tell the thread to end, if there is one, and do not wait for it: it may hang in the driver."""
        if self._end is not None:
            self._end.set()
            self._end = None

    def gpu_uuid(self, number: int) -> str | None:
        """Return the UUID of the GPU to which frameworks give `number`.

        None if there is no such GPU, or if the thread has not found the GPUs yet.
        """
        return self._uuids[number] if 0 <= number < len(self._uuids) else None

    def families(self) -> list[Family]:
        """Return the last values of the thread; [] if there are none, or if they are too old."""
        when, values = self._found
        if self._clock() - when > max(_OLD_S, _OLD_INTERVALS * self._interval_s):
            return []
        return [
            entry.family(Sample({"gpu_uuid": uuid}, value) for uuid, value in found.items())
            for entry in _ENTRIES
            if (found := values.get(entry.name))
        ]

    # the thread ----------------------------------------------------------------

    def _ask(self, end: threading.Event) -> None:
        try:
            nvml = self._import_nvml()
            nvml.nvmlInit()
        except Exception as error:  # of any kind: the driver raises its own
            logger.warning("no metrics of GPUs: NVML cannot start: %s", error)
            return
        try:
            readings = self._open(nvml)
            while not end.is_set():
                values: Values = {}
                for each in readings:
                    value = each.read()
                    if value is not None:
                        values.setdefault(each.family, {})[each.uuid] = value
                self._found = (self._clock(), values)
                end.wait(self._interval_s)
        except Exception as error:
            logger.warning("no more metrics of GPUs: %s", error)
        finally:
            try:
                nvml.nvmlShutdown()
            except Exception:
                logger.debug("NVML did not end well", exc_info=True)

    def _open(self, nvml: Any) -> list[Reading]:
        """Return a reading for each family and each GPU that this process sees; keep the UUIDs."""
        found = {}
        for number in range(nvml.nvmlDeviceGetCount()):
            handle = nvml.nvmlDeviceGetHandleByIndex(number)
            uuid = nvml.nvmlDeviceGetUUID(handle)
            found[uuid.decode() if isinstance(uuid, bytes) else uuid] = handle
        chosen = chosen_gpus(list(found), self._environment.get("CUDA_VISIBLE_DEVICES"))
        self._uuids = tuple(chosen)
        logger.info("Collecting metrics for %d GPUs", len(chosen))
        return [
            Reading(name, uuid, read, nvml)
            for uuid in chosen
            for name, read in readings_of(nvml, found[uuid]).items()
        ]


class Reading:
    """One value of one GPU, which the thread reads again and again. Used by the thread only.

    name   family of the value
    uuid   of the GPU
    read   returns the current value. The method `read` returns None if it fails, and does not call it again
           if the GPU does not have the value, or after PATIENCE failures in a row
    """

    def __init__(self, name: str, uuid: str, read: Callable[[], float], nvml: Any):
        self.family = name
        self.uuid = uuid
        self._read = read
        self._unsupported = nvml.NVMLError_NotSupported
        self._patience = PATIENCE

    def read(self) -> float | None:
        if not self._patience:
            return None
        try:
            value = self._read()
        except self._unsupported:
            self._patience = 0
            return None
        except Exception as error:
            self._patience -= 1
            rest = "" if self._patience else "; it is not asked for any more"
            logger.warning("no %s of GPU %s: %s%s", self.family, self.uuid, error, rest)
            return None
        self._patience = PATIENCE
        return value


def readings_of(nvml: Any, handle: Any) -> dict[str, Callable[[], float]]:
    """Return for each family a function that reads one GPU's value in the family's unit.

    The functions raise the errors of NVML.
    """
    # Since the start; the counter at the last reading, which begins with the driver.
    energy_mj = [0.0, -1.0]

    def energy_j() -> float:
        now = float(nvml.nvmlDeviceGetTotalEnergyConsumption(handle))
        if energy_mj[1] >= 0:
            energy_mj[0] += now - energy_mj[1] if now >= energy_mj[1] else now
        energy_mj[1] = now
        return energy_mj[0] / 1000

    return {
        "nv_gpu_utilization": lambda: nvml.nvmlDeviceGetUtilizationRates(handle).gpu / 100,
        "nv_gpu_memory_total_bytes": lambda: float(_memory(nvml, handle).total),
        "nv_gpu_memory_used_bytes": lambda: float(_memory(nvml, handle).used),
        "nv_gpu_power_usage": lambda: nvml.nvmlDeviceGetPowerUsage(handle) / 1000,
        "nv_gpu_power_limit": lambda: nvml.nvmlDeviceGetPowerManagementLimit(handle) / 1000,
        "nv_energy_consumption": energy_j,
    }


def _memory(nvml: Any, handle: Any) -> Any:
    """Return an object with the GPU's memory in bytes: `total` and `used`.

    With newer drivers `used` excludes reserved memory, as in DCGM; older ones do not tell it apart.
    """
    try:
        return nvml.nvmlDeviceGetMemoryInfo(handle, version=nvml.nvmlMemory_v2)
    except (nvml.NVMLError_FunctionNotFound, nvml.NVMLError_NotSupported):
        return nvml.nvmlDeviceGetMemoryInfo(handle)


def chosen_gpus(uuids: list[str], visible: str | None) -> list[str]:
    """Return the UUIDs of the GPUs that frameworks see, in the order of their numbers there.

    uuids     UUIDs of all GPUs, in the order of the driver
    visible   CUDA_VISIBLE_DEVICES: numbers in that order, UUIDs, or beginnings of them, with commas between.
              A word that names no GPU, several, or one again ends the list, as in CUDA. None: all GPUs
    """
    if visible is None:
        return uuids
    chosen: list[str] = []
    for word in filter(None, map(str.strip, visible.split(","))):
        if word.isdigit():
            matching = uuids[int(word) : int(word) + 1]
        else:
            matching = [uuid for uuid in uuids if uuid.startswith(word)]
        if len(matching) != 1 or matching[0] in chosen:
            break
        chosen += matching
    return chosen
