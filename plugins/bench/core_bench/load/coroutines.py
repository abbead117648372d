"""CoroutineGenerator: load by coroutines on one thread, for what the compiled Loop does not speak.

TLS, models in this process, and gRPC without libnghttp2. It measures as Loop does (native/loop.hpp).
"""

from __future__ import annotations

import asyncio
import random
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass

from core_bench.load.senders import Lost, Marks, Refused, Sender, SequenceFields
from core_bench.native.engine import Tally, now_ns
from core_bench.plan import Level, Pace, Sequences

_TICK_S = 0.02


class CoroutineGenerator:
    """See Generator.

    sender       makes the sender; called on the thread of `run`
    slots        requests in flight at most
    """

    def __init__(
        self,
        sender: Callable[[], Sender],
        level: Level,
        streams: Sequence[Sequence[int]],
        sequences: Sequences | None,
        *,
        slots: int,
        seed: int,
        timeout_s: float,
        give_up_s: float,
        drain_s: float,
    ):
        self._sender, self._level, self._slots = sender, level, slots
        self._timeout_s, self._give_up_s, self._drain_s = timeout_s, give_up_s, drain_s
        self._random = random.Random(seed)
        self._chooser = Chooser(streams, sequences, random.Random(seed + 1))
        self._right = self._wrong = 0
        self._stopped = False

    def stop(self) -> None:
        self._stopped = True

    @property
    def progress(self) -> tuple[int, int]:
        return self._right, self._wrong

    def run(self, settle_s: float, measure_s: float, at_least: int) -> tuple[Tally, bool]:
        return asyncio.run(self._run(settle_s, measure_s, at_least))

    async def _run(self, settle_s: float, measure_s: float, at_least: int) -> tuple[Tally, bool]:
        sender = self._sender()
        await sender.open()
        round_ = _Round(now_ns(), settle_s, measure_s, at_least, self._level.open)
        try:
            work = self._open_loop if self._level.open else self._closed_loop
            tasks = await work(sender, round_)
            round_.tally.used_cpu(round_.cpu_ns)
            if tasks:
                _, late = await asyncio.wait(
                    tasks, timeout=self._drain_s if not self._stopped else 0
                )
                for each in late:
                    each.cancel()
                await asyncio.gather(*late, return_exceptions=True)
        finally:
            await sender.close()
        return round_.tally, not round_.lost

    async def _closed_loop(self, sender: Sender, round_: _Round) -> list[asyncio.Task[None]]:
        async def one() -> None:
            slot = _Slot(self._chooser.run())
            while not round_.over:
                await self._one(sender, round_, slot, now_ns(), False)
            await self._end_sequence(sender, round_, slot)

        tasks = [asyncio.create_task(one()) for _ in range(self._slots)]
        await self._until_over(round_)
        return tasks

    async def _open_loop(self, sender: Sender, round_: _Round) -> list[asyncio.Task[None]]:
        free = [_Slot(self._chooser.run()) for _ in range(self._slots)]
        tasks: set[asyncio.Task[None]] = set()
        freed = asyncio.Event()

        async def one(slot: _Slot, due: int, waited: bool) -> None:
            try:
                await self._one(sender, round_, slot, due, waited)
                if round_.over:
                    await self._end_sequence(sender, round_, slot)
            finally:
                free.append(slot)
                freed.set()

        ticker = asyncio.create_task(self._until_over(round_))
        arrivals, due, waited = self._arrivals(round_.start), 0, False
        for due in arrivals:
            if due >= round_.goal:
                break
            while (wait := due - now_ns()) > 0 and not round_.over:
                await asyncio.sleep(min(wait / 1e9, _TICK_S))
            waited = not free or (waited and due < now_ns())  # or those before it did
            while not free and not round_.over:
                freed.clear()
                try:
                    await asyncio.wait_for(freed.wait(), _TICK_S)
                except asyncio.TimeoutError:
                    pass
            if due >= round_.end or not free:
                break
            task = asyncio.create_task(one(free.pop(), due, waited))
            tasks.add(task)
            task.add_done_callback(tasks.discard)
            await asyncio.sleep(0)
        await ticker
        ends = [self._end_sequence(sender, round_, each) for each in free]
        while due < round_.end:
            if due >= round_.begin:
                round_.tally.censored(round_.end - due, False)
            due = next(arrivals)
        return [*tasks, *map(asyncio.create_task, ends)]

    def _arrivals(self, start: int) -> Iterator[int]:
        level = self._level
        due, number = start, 0
        while True:
            if level.pace is Pace.CONSTANT:
                yield start + round(number * 1e9 / level.value)
            elif level.pace is Pace.POISSON:
                due += round(self._random.expovariate(level.value) * 1e9)
                yield due
            else:
                due += level.intervals_ns[number % len(level.intervals_ns)]
                yield due
            number += 1

    async def _until_over(self, round_: _Round) -> None:
        while not round_.over:
            await asyncio.sleep(min(_TICK_S, max(round_.goal - now_ns(), 1e6) / 1e9))
            round_.look(self._stopped, self._give_up_s)

    async def _one(
        self,
        sender: Sender,
        round_: _Round,
        slot: _Slot,
        due: int,
        waited: bool,
    ) -> None:
        number, fields = next(slot.run)
        slot.ended = fields.end or not fields.id
        marks, tally, sent = Marks(), round_.tally, now_ns()
        if fields.start:
            tally.began_sequence()
        try:
            await asyncio.wait_for(sender.send(number, fields, marks), self._timeout_s)
        except asyncio.CancelledError:
            if tally.within(due):
                tally.censored(now_ns() - due, True)
            raise
        except Exception as error:  # whatever a library raises is an error of the request
            self._wrong += 1
            if isinstance(error, asyncio.TimeoutError):
                tally.error("timeout")
            else:
                name = "" if isinstance(error, Refused) else f"{type(error).__name__}: "
                tally.error(f"{name}{error}")
            if isinstance(error, Lost):
                round_.refused()
                await asyncio.sleep(_TICK_S)
            return
        self._right += 1
        round_.refused_since = 0
        now = now_ns()
        if tally.within(due):
            for gap in marks.gaps:
                tally.gap(gap)
        tally.answered(
            due, sent, marks.first, marks.last, marks.responses, marks.tokens, waited, now
        )

    async def _end_sequence(self, sender: Sender, round_: _Round, slot: _Slot) -> None:
        """Send the rest of a sequence: an open one would hold up those of the next round in the server."""
        while not slot.ended and not self._stopped and not round_.lost:
            await self._one(sender, round_, slot, now_ns(), False)


@dataclass
class _Slot:
    """Sends one request at a time. ended: it is not within a sequence."""

    run: Iterator[tuple[int, SequenceFields]]
    ended: bool = True


class _Round:
    """Times and state of one round."""

    def __init__(
        self, start: int, settle_s: float, measure_s: float, at_least: int, open_loop: bool
    ):
        self.start, self.begin = start, start + round(settle_s * 1e9)
        self.goal = self.end = self.begin + round(measure_s * 1e9)
        self.over = self.lost = False
        self.refused_since = 0
        self.cpu_ns = 0
        self.tally = Tally()
        self.tally.begin(self.begin, self.goal if open_loop else 2**62)
        self._at_least = 0 if open_loop else at_least
        self._open = open_loop
        self._cpu_began = time.thread_time_ns()

    def refused(self) -> None:
        self.refused_since = self.refused_since or now_ns()

    def look(self, stopped: bool, give_up_s: float) -> None:
        """End the round if it is time."""
        now = now_ns()
        if self.refused_since and now - self.refused_since > give_up_s * 1e9:
            self.lost = True
        counts = self.tally.counts
        enough = counts["completed"] + counts["failed"] >= self._at_least
        done = now >= self.goal and enough and not self.refused_since
        if self.over or not (stopped or self.lost or done):
            return
        self.over = True
        if stopped or self.lost or not self._open:
            self.end = max(now, self.begin + 1)
            self.tally.end_at(self.end)
        self.cpu_ns = time.thread_time_ns() - self._cpu_began


class Chooser:
    """Which request comes next; see native/sequence.hpp."""

    def __init__(
        self, streams: Sequence[Sequence[int]], sequences: Sequences | None, source: random.Random
    ):
        self._streams, self._sequences, self._random = streams, sequences, source
        self._all = [number for stream in streams for number in stream]
        self._place = 0
        self._next_id = sequences.first_id if sequences else 0

    def run(self) -> Iterator[tuple[int, SequenceFields]]:
        """Yield the numbers and fields of the requests that one connection sends."""
        while True:
            place, self._place = self._place, self._place + 1
            if self._sequences is None:
                yield self._all[place % len(self._all)], SequenceFields()
                continue
            stream = self._streams[place % len(self._streams)]
            length, identity = self._length(len(stream)), self._take_id()
            for step in range(length):
                fields = SequenceFields(identity, step == 0, step == length - 1)
                yield stream[step % len(stream)], fields

    def _length(self, steps: int) -> int:
        sequences = self._sequences
        assert sequences is not None
        if not sequences.length:
            return steps
        by = sequences.variation * self._random.uniform(-1, 1)
        return max(1, round(sequences.length * (1 + by)))

    def _take_id(self) -> int:
        sequences = self._sequences
        assert sequences is not None
        identity, self._next_id = self._next_id, self._next_id + 1
        if sequences.end_id and self._next_id >= sequences.end_id:
            self._next_id = sequences.first_id
        return identity
