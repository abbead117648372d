"""Meter: the memory of this process, of other processes and of GPUs, as the system counts it.

Every method blocks: call it on a worker thread. Private memory counts (RssAnon and RssShmem of proc(5)). The
code of libraries, which processes share, does not. Files that a model has mapped count in full.
"""

from __future__ import annotations

import importlib
import logging
import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from core.devices.visible import gpus
from core.system import heap
from core.system.account import available_bytes
from core_memory_budget.sizes import HOST, Bytes

logger = logging.getLogger("core")

_KIB = 1024


@dataclass(frozen=True)
class Reading:
    """What a process holds at one moment.

    private   bytes of the host that only this process has
    resident  the same with what it shares with others
    gpus      device → bytes in use on it, by all processes
    own_gpus  device → bytes that this process and its children use of them; without the devices on which
              the driver shows none of these
    untold    devices on which the driver did not tell the bytes of processes at this moment
    """

    private: int
    resident: int
    gpus: Bytes = field(default_factory=dict)
    own_gpus: Bytes = field(default_factory=dict)
    untold: frozenset[str] = frozenset()


class Meter:
    """The figures of the kernel and of NVML. Without /proc (other systems than Linux) there are none.

    proc   where proc(5) is mounted
    nvml   returns the module `pynvml`
    gpus   numbers of the visible GPUs
    """

    def __init__(
        self,
        proc: Path = Path("/proc"),
        nvml: Callable[[], Any] = lambda: importlib.import_module("pynvml"),
        visible: Callable[[], tuple[int, ...]] = gpus,
        environment: Mapping[str, str] = os.environ,
    ):
        self._pid = os.getpid()
        self._own = proc / "self"
        self._proc = proc
        self._trim = heap.system_trim()
        self._nvml: Any = None
        self._handles: list[Any] = []
        self._warned = False
        self.gpus = visible()
        if self.gpus:
            try:
                self._nvml = nvml()
                self._nvml.nvmlInit()
                self._handles = _visible(self._nvml, environment.get("CUDA_VISIBLE_DEVICES"))
            except Exception as error:  # of any kind: the driver raises its own
                logger.warning("the memory of GPUs is not measured: NVML cannot start: %s", error)

    @property
    def works(self) -> bool:
        """Return whether the memory of this process can be measured."""
        return (self._own / "status").exists()

    def totals(self) -> Bytes:
        """Return the memory of each device: device → bytes."""
        found = {HOST: available_bytes()}
        return found | {device: int(info.total) for device, info in self._of_gpus().items()}

    def trim(self) -> None:
        """Return freed memory to the system, as far as the C library can."""
        if self._trim is not None:
            self._trim()

    def now(self) -> Reading:
        """Return what this process holds now."""
        found = _fields(self._own / "status", ("RssAnon", "RssShmem", "VmRSS"))
        private = found.get("RssAnon", 0) + found.get("RssShmem", 0)
        in_use = {device: int(info.used) for device, info in self._of_gpus().items()}
        return Reading(private, found.get("VmRSS", 0), in_use, *self._own_gpus())

    def _of_gpus(self) -> dict[str, Any]:
        """Return what NVML tells of each GPU, without those that it cannot read."""
        found = {}
        for number, handle in enumerate(self._handles):
            try:
                found[f"gpu{number}"] = self._nvml.nvmlDeviceGetMemoryInfo(handle)
            except Exception as error:  # a load must not fail because a figure is missing
                level = logging.DEBUG if self._warned else logging.WARNING
                logger.log(level, "NVML cannot read the memory of gpu%d: %s", number, error)
                self._warned = True
        return found

    def _own_gpus(self) -> tuple[Bytes, frozenset[str]]:
        """Return `own_gpus` and `untold` of a reading."""
        found: Bytes = {}
        untold = set()
        for number, handle in enumerate(self._handles):
            device = f"gpu{number}"
            try:
                # In a container the driver may number processes otherwise: then none of them is found.
                all_of_it = self._nvml.nvmlDeviceGetComputeRunningProcesses(handle)
                sizes = [each.usedGpuMemory for each in all_of_it if self._is_own(each.pid)]
                if None in sizes:
                    untold.add(device)
                elif sizes:
                    found[device] = sum(map(int, sizes))
            except Exception:  # a load must not fail because a figure is missing
                logger.debug("NVML cannot tell processes of %s", device, exc_info=True)
                untold.add(device)
        return found, frozenset(untold)

    def _is_own(self, pid: int) -> bool:
        """Return whether a process is this one or descends from it."""
        while pid not in (0, self._pid):
            pid = self._parent(pid)
        return pid == self._pid

    def _parent(self, pid: int) -> int:
        """Return the parent of a process; 0 if there is none, or no such process."""
        try:
            lines = (self._proc / str(pid) / "status").read_text().splitlines()
        except OSError:
            return 0
        return next((int(each.split()[1]) for each in lines if each.startswith("PPid:")), 0)

    def forget_peak(self) -> None:
        """Begin a new measurement of `peak` (clear_refs in proc(5))."""
        try:
            (self._own / "clear_refs").write_text("5")
        except OSError:  # not permitted here: the peak of the whole life remains
            logger.debug("the peak of the resident memory cannot be reset", exc_info=True)

    def peak(self) -> int:
        """Return the highest resident memory since `forget_peak`."""
        return _fields(self._own / "status", ("VmHWM",)).get("VmHWM", 0)

    def mapped(self, folder: Path) -> int:
        """Return the bytes of files below a folder that this process has mapped.

        A part of a file that is mapped twice counts once: both have the same pages.
        """
        # `maps` has a line for each mapping, `smaps` more than twenty: their parsing would hold up requests.
        beginning = os.fsencode(f"{folder.resolve()}/")
        try:
            text = (self._own / "maps").read_bytes()
        except OSError:
            return 0
        if beginning not in text:
            return 0
        words = (line.split(maxsplit=5) for line in text.splitlines())
        found = [each for each in words if each[5:] and each[5].startswith(beginning)]
        # The offset in the file, its device, its inode, and the length
        parts = {(each[2], each[3], each[4], _length(each[0])) for each in found}
        return sum(part[-1] for part in parts)

    def of_process(self, pid: int) -> int:
        """Return the proportional set size of another process; 0 if it has ended.

        A page that n processes share counts as an n-th of it.
        """
        try:
            return _fields(self._proc / str(pid) / "smaps_rollup", ("Pss",)).get("Pss", 0)
        except OSError:
            return 0


def _fields(path: Path, names: tuple[str, ...]) -> Bytes:
    """Return the named lines of a file of proc(5), in bytes."""
    found: Bytes = {}
    for line in path.read_text().splitlines():
        name, _, rest = line.partition(":")
        if name in names:
            found[name] = int(rest.split()[0]) * _KIB
    return found


def _length(addresses: bytes) -> int:
    """Return the bytes between two addresses: b"7f00-8f00"."""
    first, _, end = addresses.partition(b"-")
    return int(end, 16) - int(first, 16)


def _visible(nvml: Any, chosen: str | None) -> list[Any]:
    """Return the handles of the GPUs that frameworks see, in the order of their numbers there."""
    handles = [nvml.nvmlDeviceGetHandleByIndex(i) for i in range(nvml.nvmlDeviceGetCount())]
    if chosen is None:
        return handles
    found = []
    for word in filter(None, map(str.strip, chosen.split(","))):
        if word.isdigit():
            found += handles[int(word) : int(word) + 1]
        else:
            found += [each for each in handles if _uuid(nvml, each).startswith(word)][:1]
    return found


def _uuid(nvml: Any, handle: Any) -> str:
    uuid = nvml.nvmlDeviceGetUUID(handle)
    return uuid.decode() if isinstance(uuid, bytes) else str(uuid)
