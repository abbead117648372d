"""Settings that torch has once per process: threads, and the optimisation of TorchScript.

Parameters ─► [ProcessSettings] ─► torch.  The first model that sets one wins. If a later model wants another
value, the server logs a warning and serves the model.
"""

from __future__ import annotations

import logging
import os
import threading
from collections.abc import Callable
from typing import Any

from backend_pytorch.parameters import Parameters
from core.system import platform

logger = logging.getLogger("core")

_JIT = {
    "ENABLE_JIT_EXECUTOR": "_jit_set_profiling_executor",
    "ENABLE_JIT_PROFILING": "_jit_set_profiling_mode",
    "ENABLE_TENSOR_FUSER": "_jit_set_texpr_fuser_enabled",
}


class ProcessSettings:
    """The settings that models have made so far, with the names of these models. Thread-safe."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._given: dict[str, tuple[Any, str]] = {}  # name → value, model
        self._threads = 0  # threads of an operation; 0 leaves the number to torch
        self._here = threading.local()  # .threads: the number that the calling thread has set

    def begin(self, torch: Any) -> None:
        """Choose the default number of threads, which `enter` sets.

        Do nothing if a number is chosen already, or if OMP_NUM_THREADS or MKL_NUM_THREADS is set.
        """
        said = os.environ.get("OMP_NUM_THREADS") or os.environ.get("MKL_NUM_THREADS")
        if not self._threads and not said:
            self._threads = intra_op_threads(torch.get_num_threads())

    def enter(self, torch: Any) -> None:
        """Set the number of threads for the calling thread. Call it before torch runs there.

        OpenMP has a number per calling thread, and torch sets it only for threads that have run nothing yet.
        """
        if getattr(self._here, "threads", 0) != self._threads:
            torch.set_num_threads(self._threads)
            self._here.threads = self._threads

    def apply(self, torch: Any, parameters: Parameters, model: str) -> None:
        """Apply a model's parameters that no other model has set. Log a warning if another value is set."""
        self._set(
            "INTRA_OP_THREAD_COUNT",
            parameters.threads("INTRA_OP_THREAD_COUNT", "NUM_THREADS"),
            self._set_threads,
            model,
        )
        self._set(
            "INTER_OP_THREAD_COUNT",
            parameters.threads("INTER_OP_THREAD_COUNT", "NUM_INTEROP_THREADS"),
            torch.set_num_interop_threads,
            model,
        )
        for name, function in _JIT.items():
            self._set(name, parameters.boolean(name), getattr(torch._C, function), model)
        if parameters.boolean("ENABLE_NVFUSER"):
            logger.warning(
                "model '%s': ENABLE_NVFUSER means nothing, torch %s has no NvFuser",
                model,
                torch.__version__,
            )

    def _set_threads(self, count: int) -> None:
        self._threads = count

    def _set(self, name: str, value: Any, function: Callable[[Any], Any], model: str) -> None:
        if value is None:
            return
        with self._lock:
            if name not in self._given:
                self._given[name] = value, model
                try:
                    function(value)
                # torch accepts the number of inter-op threads only before the first use.
                except RuntimeError as error:
                    logger.warning("model '%s': %s cannot be %s now: %s", model, name, value, error)
                return
            first, by = self._given[name]
        if first != value:
            logger.warning(
                "model '%s': %s is one setting of the whole process and stays %s, which model '%s' "
                "has set first; %s is ignored",
                model,
                name,
                first,
                by,
                value,
            )


def intra_op_threads(by_torch: int) -> int:
    """Return the default number of threads of one operation.

    by_torch   torch's own default: the machine's cores without hyperthreads
    The maximum is one core less than the process may use. The event loop needs one, and OpenMP's threads spin
    between operations on the cores of working threads. With two cores that is 1, which also has the highest
    throughput there.
    """
    return max(1, min(by_torch, len(platform.cores()) - 1))


settings = ProcessSettings()
