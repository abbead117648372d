"""RecentGrowth: how much counters have grown over the last seconds."""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Mapping
from typing import Generic, TypeVar

K = TypeVar("K", bound=Hashable)


class RecentGrowth(Generic[K]):
    """Keeps past values of counters. Not thread-safe: call from one thread only.

    span_s   seconds over which growth is measured, if the counters are read at least that often
    """

    def __init__(self, span_s: float):
        self._span_s = span_s
        self._past: deque[tuple[float, Mapping[K, float]]] = deque()

    def add(self, now_s: float, totals: Mapping[K, float]) -> tuple[float, dict[K, float]]:
        """Keep the values of now. Return the seconds since an earlier reading, and the growth since then.

        The earlier reading is the youngest that is at least `span_s` old, else the oldest one. A counter that
        the earlier reading lacks has grown from 0; one that is smaller than before has grown by 0. The first
        call returns (0, {}).
        """
        past = self._past
        while len(past) > 1 and past[1][0] <= now_s - self._span_s:
            past.popleft()
        past.append((now_s, totals))
        then_s, before = past[0]
        if now_s <= then_s:
            return 0.0, {}
        return now_s - then_s, {
            key: max(0.0, total - before.get(key, 0.0)) for key, total in totals.items()
        }
