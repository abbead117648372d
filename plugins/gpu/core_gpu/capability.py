"""--min-supported-compute-capability: which GPUs instances are placed on."""

from __future__ import annotations

import logging
from collections.abc import Sequence

from core_gpu.driver import CudaDriver

logger = logging.getLogger("core")


def supported(numbers: Sequence[int], least: float, driver: CudaDriver) -> tuple[int, ...]:
    """Return the GPUs whose compute capability is at least `least`; log the others, with their names."""
    # 8.6 is (8, 6), and 12.1 is (12, 1): no minor number has two digits.
    wanted = divmod(round(least * 10), 10)
    found = []
    for number in numbers:
        major, minor = driver.capability(number)
        if (major, minor) >= wanted:
            found.append(number)
            continue
        logger.warning(
            "no instance is placed on GPU %d (%s): its compute capability is %d.%d, "
            "--min-supported-compute-capability is %.1f",
            *(number, driver.name(number), major, minor, least),
        )
    return tuple(found)
