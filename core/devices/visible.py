"""The numbers of the GPUs that instances may use, read without a driver library.

Backends check the capabilities of a GPU.
"""

from __future__ import annotations

import os
import re
from pathlib import Path


def gpus(
    devices: Path = Path("/dev"), environment: dict[str, str] | None = None
) -> tuple[int, ...]:
    """Return the numbers of the visible NVIDIA GPUs in the numbering of frameworks: 0, 1, …

    devices       folder of device files
    environment   variables; None for those of the process
    CUDA_VISIBLE_DEVICES shows as many of them as it has entries other than "" and -1, none if it is "".
    TRITON_SERVER_CPU_ONLY hides all, unless it is "" or "0".
    """
    found = environment if environment is not None else dict(os.environ)
    if found.get("TRITON_SERVER_CPU_ONLY") not in (None, "", "0"):
        return ()
    try:
        count = sum(re.fullmatch(r"nvidia\d+", name) is not None for name in os.listdir(devices))
    except OSError:
        return ()
    visible = found.get("CUDA_VISIBLE_DEVICES")
    if visible is not None:
        named = [
            each for each in visible.split(",") if each.strip() not in ("", "-1", "NoDevFiles")
        ]
        count = min(count, len(named))
    return tuple(range(count))
