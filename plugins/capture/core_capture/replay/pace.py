"""Pace: when a record is sent."""

from __future__ import annotations

import asyncio
import heapq
import math

from core_capture.records.record import Record


class Pace:
    """Holds records back until it is their time. One event loop only.

    speed     1 for the recorded pace, 2 for twice as fast; infinite: as fast as possible
    ordered   whether a record waits for those that had ended before it began, so that the steps of a
              sequence, for example, stay in their order; always at infinite speed
    late_ns   the largest delay of a record behind its time
    """

    def __init__(self, speed: float, ordered: bool = False):
        self._speed = speed
        self._ordered = ordered or math.isinf(speed)
        self._began_s = 0.0  # of the event loop's clock
        self._first_ns: int | None = None  # beginning of the first record
        self._running: list[
            tuple[int, int]
        ] = []  # heap: recorded end, and number, of those without an answer
        self._answered: set[int] = set()  # numbers that are still in the heap
        self._changed = asyncio.Event()
        self.late_ns = 0

    @property
    def speed(self) -> float:
        return self._speed

    @property
    def ordered(self) -> bool:
        """Return whether records keep their order.

        Then those that overlap are also sent one after the other: of several sequences that wait for a slot,
        the same one gets it again.
        """
        return self._ordered

    async def turn(self, number: int, record: Record) -> None:
        """Wait until the record may be sent. Call it in the order of the beginnings of the records."""
        if self._ordered:
            while self._earliest_end() < record.time_ns:
                self._changed.clear()
                await self._changed.wait()
            heapq.heappush(self._running, (record.end_ns, number))
        if math.isinf(self._speed):
            return
        now_s = asyncio.get_running_loop().time()
        if self._first_ns is None:
            self._began_s, self._first_ns = now_s, record.time_ns
        left_s = self._began_s + (record.time_ns - self._first_ns) / 1e9 / self._speed - now_s
        if left_s > 0:
            await asyncio.sleep(left_s)
        else:
            self.late_ns = max(self.late_ns, int(-left_s * 1e9))

    def answered(self, number: int) -> None:
        """The answer to a record has come."""
        if self._ordered:
            self._answered.add(number)
            self._changed.set()

    def _earliest_end(self) -> float:
        while self._running and self._running[0][1] in self._answered:
            self._answered.discard(heapq.heappop(self._running)[1])
        return self._running[0][0] if self._running else math.inf
