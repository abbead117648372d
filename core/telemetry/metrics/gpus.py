"""What the driver tells of the GPUs, by NVML.

A thread of its own asks and leaves its findings where the loop picks them up, so a driver that fails or
hangs stalls nobody: what is too old is not told any more. Source of names, units and patience: Triton's
metrics, which come from DCGM.
"""

from __future__ import annotations

import importlib
import logging
import os
import threading
import time
from collections.abc import Callable, Mapping
from typing import Any

from core.devices import gpus
from core.telemetry.families import Family, Sample
from core.telemetry.metrics.catalog import family

logger = logging.getLogger("core")

PATIENCE = 3  # failures of one reading in a row, then it is not asked for again
_OLD_INTERVALS, _OLD_S = 5, 10.0  # findings are told for the longer of both

Values = dict[str, dict[str, float]]  # family → GPU → value


class Gpus:
    """The GPUs that this process sees. Loop thread, but for the methods of the thread that asks.

    import_nvml   gives the module `pynvml`, or raises ImportError
    visible       as core.devices.gpus: what frameworks see
    environment   of the process
    """

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
        self._end: threading.Event | None = None  # of the thread that asks
        # Both are replaced as a whole by the thread that asks.
        self._found: tuple[float, Values] = (float("-inf"), {})
        self._uuids: tuple[str, ...] = ()

    def start(self) -> None:
        """Ask from now on, if this process sees a GPU."""
        if self._end is None and self._visible():
            self._end = threading.Event()
            threading.Thread(
                target=self._ask, args=(self._end,), name="core-gpu-metrics", daemon=True
            ).start()

    def stop(self) -> None:
        """Ask no more. A thread that hangs in the driver is left behind."""
        if self._end is not None:
            self._end.set()
            self._end = None

    def uuid(self, number: int) -> str | None:
        """Which GPU that is, by the number that frameworks give it; None if nobody knows."""
        return self._uuids[number] if 0 <= number < len(self._uuids) else None

    def families(self) -> list[Family]:
        """The last findings, unless they are too old."""
        when, values = self._found
        if self._clock() - when > max(_OLD_S, _OLD_INTERVALS * self._interval_s):
            return []
        return [
            family(
                name, [Sample({"gpu_uuid": uuid}, value) for uuid, value in values[name].items()]
            )
            for name in values
        ]

    # the thread that asks ----------------------------------------------------

    def _ask(self, end: threading.Event) -> None:
        try:
            nvml = self._import_nvml()
        except ImportError:
            logger.warning(
                "no metrics of GPUs: nvidia-ml-py is not installed; try: pip install core[gpu-metrics]"
            )
            return
        try:
            nvml.nvmlInit()
        except Exception as error:  # whatever a driver may do, it ends here
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
        """What is to be read of the GPUs that this process sees."""
        found = {}
        for number in range(nvml.nvmlDeviceGetCount()):
            handle = nvml.nvmlDeviceGetHandleByIndex(number)
            found[_text(nvml.nvmlDeviceGetUUID(handle))] = handle
        chosen = chosen_gpus(list(found), self._environment.get("CUDA_VISIBLE_DEVICES"))
        self._uuids = tuple(chosen)
        logger.info("Collecting metrics for %d GPUs", len(chosen))
        return [
            Reading(name, uuid, read, nvml)
            for uuid in chosen
            for name, read in readings_of(nvml, found[uuid]).items()
        ]


class Reading:
    """One value of one GPU. On the thread that asks.

    read   gives the value now, None if it cannot be told
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
    """Family → a function that reads its value of one GPU, in the unit of the family."""
    # Since the start; the counter at the last look, which begins with the driver.
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
    """Total and used bytes. Newer drivers keep what they have reserved out of `used`, as DCGM does."""
    try:
        return nvml.nvmlDeviceGetMemoryInfo(handle, version=nvml.nvmlMemory_v2)
    except (nvml.NVMLError_FunctionNotFound, nvml.NVMLError_NotSupported):
        return nvml.nvmlDeviceGetMemoryInfo(handle)


def chosen_gpus(uuids: list[str], visible: str | None) -> list[str]:
    """Which GPUs frameworks see, in the order in which they number them.

    uuids     of all, as the driver numbers them
    visible   CUDA_VISIBLE_DEVICES: numbers or (beginnings of) UUIDs; what is none ends the list, as in CUDA
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


def _text(found: str | bytes) -> str:
    return found.decode() if isinstance(found, bytes) else found
