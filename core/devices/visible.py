"""Which GPUs instances may be placed on.

Only their numbers, read without a driver library: what a GPU can do is the backends' business.
"""

from __future__ import annotations

import os
import re
from pathlib import Path


def gpus(
    devices: Path = Path("/dev"), environment: dict[str, str] | None = None
) -> tuple[int, ...]:
    """Numbers of the NVIDIA GPUs that this process sees, as frameworks number them: 0, 1, …

    CUDA_VISIBLE_DEVICES bounds how many there are; TRITON_SERVER_CPU_ONLY set means none, as in Triton.
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
