"""Check that the server's resources stay constant under constant load."""

from __future__ import annotations

import time
from dataclasses import dataclass

from soak.server import Server

WARM_UP = 0.25  # of the time: whatever is made once has been made by then


@dataclass
class Sample:
    at_s: float
    resident_mib: float
    pss_mib: float
    threads: int
    descriptors: int


class Upkeep:
    """Samples since the beginning."""

    def __init__(self, server: Server) -> None:
        self._server = server
        self._start = time.monotonic()
        self.samples: list[Sample] = []

    def look(self) -> None:
        self.samples.append(
            Sample(
                time.monotonic() - self._start,
                self._server.resident_mib(),
                self._server.pss_mib(),
                self._server.threads(),
                sum(self._server.descriptors().values()),
            )
        )

    def settled(self) -> list[Sample]:
        """Those after the warm-up."""
        return self.samples[int(len(self.samples) * WARM_UP) :]

    def grown_mib(self) -> float:
        """How much more the server's own process holds in the last quarter than in the first (medians)."""
        samples = self.settled()
        quarter = max(1, len(samples) // 4)
        first = sorted(each.resident_mib for each in samples[:quarter])
        last = sorted(each.resident_mib for each in samples[-quarter:])
        return last[len(last) // 2] - first[len(first) // 2]

    def slope_mib_per_minute(self) -> float:
        """Of the line that fits the samples after the warm-up best (least squares)."""
        samples = self.settled()
        if len(samples) < 2:
            return 0.0
        mean_at = sum(each.at_s for each in samples) / len(samples)
        mean = sum(each.resident_mib for each in samples) / len(samples)
        above = sum((each.at_s - mean_at) * (each.resident_mib - mean) for each in samples)
        below = sum((each.at_s - mean_at) ** 2 for each in samples)
        return above / below * 60
