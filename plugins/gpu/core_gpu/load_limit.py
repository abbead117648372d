"""--model-load-gpu-limit: no model is loaded on a GPU whose memory is in use beyond a share."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from core.errors import unavailable
from core_gpu.memory import GpuMemory

_GIB = 1 << 30


def check_limits(
    name: str, numbers: Iterable[int], limits: Mapping[int, float], memory: GpuMemory
) -> None:
    """Raise CoreError(UNAVAILABLE), with the beginning of Triton's text, if a GPU is fuller than its limit.

    name      of the model
    numbers   of the GPUs of its instances
    limits    number of a GPU → fraction of its memory
    Blocks.
    """
    for number in numbers:
        limit = limits.get(number)
        if limit is None:
            continue
        found = memory.of(number)
        if found.share > limit:
            raise unavailable(
                f"can not create model '{name}': memory limit set for KIND_GPU {number} has exceeded, model "
                f"loading is rejected: {found.used / _GIB:.2f} of {found.total / _GIB:.2f} GiB are in use "
                f"({found.share:.1%}), --model-load-gpu-limit permits {limit:.1%}; unload another model, or "
                "raise the limit"
            )
