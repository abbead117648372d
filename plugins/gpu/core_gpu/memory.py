"""GpuMemory: how much memory of a GPU all processes use, read by NVML."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, NamedTuple

from core.errors import internal, unavailable


class Use(NamedTuple):
    """Memory of a GPU, in bytes. `used` by all processes, without what the driver reserves for itself."""

    used: int
    total: int

    @property
    def share(self) -> float:
        return self.used / self.total


class GpuMemory:
    """Reads the memory of GPUs. Takes none itself: no context is created. Thread-safe.

    uuid          number of a GPU in this process → its UUID, without "GPU-" or "MIG-"
    import_nvml   returns the module `pynvml`
    Raises CoreError(INTERNAL) if NVML cannot start.
    """

    def __init__(
        self,
        uuid: Callable[[int], str],
        import_nvml: Callable[[], Any] = lambda: importlib.import_module("pynvml"),
    ):
        self._uuid = uuid
        self._handles: dict[int, Any] = {}
        try:
            self._nvml = import_nvml()
            self._nvml.nvmlInit()
        except Exception as error:  # of any kind: the driver raises its own
            raise internal(
                f"--model-load-gpu-limit needs NVML, which cannot start: {error}; in a container, "
                "NVIDIA_DRIVER_CAPABILITIES has to contain 'utility'"
            ) from error

    def of(self, number: int) -> Use:
        """Return the memory of a GPU now. Blocks. Raises CoreError(UNAVAILABLE) if it cannot be read."""
        try:
            if number not in self._handles:
                self._handles[number] = self._handle(self._uuid(number))
            found = self._read(self._handles[number])
        except Exception as error:
            raise unavailable(f"the memory of GPU {number} cannot be read: {error}") from error
        return Use(int(found.used), int(found.total))

    def close(self) -> None:
        self._nvml.nvmlShutdown()

    def _handle(self, uuid: str) -> Any:
        try:
            return self._nvml.nvmlDeviceGetHandleByUUID(f"GPU-{uuid}")
        except self._nvml.NVMLError:  # a part of a GPU (MIG) has its own UUID
            return self._nvml.nvmlDeviceGetHandleByUUID(f"MIG-{uuid}")

    def _read(self, handle: Any) -> Any:
        """Return an object with `used` and `total`; older drivers count reserved memory as used."""
        nvml = self._nvml
        try:
            return nvml.nvmlDeviceGetMemoryInfo(handle, version=nvml.nvmlMemory_v2)
        except (nvml.NVMLError_FunctionNotFound, nvml.NVMLError_NotSupported):
            return nvml.nvmlDeviceGetMemoryInfo(handle)
