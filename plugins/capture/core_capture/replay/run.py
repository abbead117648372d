"""Replay: sends the records of a plan, and compares the answers.

Plan ─► [Replay] ─► Pace ─► Sender ─► Outcome ─► Comparison ─► Results
"""

from __future__ import annotations

import asyncio
import time
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from core_capture.records.reader import CaptureReader, Place
from core_capture.records.record import Damaged, Record
from core_capture.replay.compare import Comparison
from core_capture.replay.conversion import converted
from core_capture.replay.outcome import Outcome, Sender
from core_capture.replay.pace import Pace
from core_capture.replay.plan import Plan
from core_capture.tensors.message import Unreadable

MOST_DIFFERENCES = 1000  # that are kept; all are counted


@dataclass(frozen=True)
class Difference:
    """A record whose answer differs, or that has none.

    number   of the record in the plan, from 0 on
    record   without its messages
    """

    number: int
    record: Record
    text: str


@dataclass
class Results:
    """The results of a replay.

    counts   equal, differing, unanswered, unsent, uncompared → number of records
    before_ns, now_ns   durations of the records that were answered, recorded and now
    late_ns  the largest delay of a record behind its time
    """

    counts: Counter[str] = field(default_factory=Counter)
    differences: list[Difference] = field(default_factory=list)
    before_ns: list[int] = field(default_factory=list)
    now_ns: list[int] = field(default_factory=list)
    duration_ns: int = 0
    late_ns: int = 0

    @property
    def good(self) -> bool:
        return not (self.counts["differing"] or self.counts["unanswered"])


class Replay:
    """Sends a plan once. One event loop only.

    senders       protocol of a record → what sends it
    comparison    None: answers are not compared
    protocol      over which all records are sent, "http" or "grpc"; "": each over its own
    concurrency   most records without an answer at a time
    told          called after each answer
    """

    def __init__(
        self,
        plan: Plan,
        senders: Mapping[str, Sender],
        comparison: Comparison | None,
        pace: Pace,
        protocol: str = "",
        concurrency: int = 1000,
        told: Callable[[Results], None] = lambda results: None,
    ):
        self._plan = plan
        self._senders = senders
        self._comparison = comparison
        self._speed = pace.speed
        self._protocol = protocol
        self._pace = pace
        self._free = asyncio.Semaphore(concurrency)
        self._told = told
        self.results = Results()

    async def run(self) -> Results:
        """Send all records; return the results when the last answer is here."""
        start_ns = time.monotonic_ns()
        tasks: set[asyncio.Task[None]] = set()
        before = asyncio.Event()
        before.set()
        try:
            for number, (place, known) in enumerate(self._plan.items):
                await self._free.acquire()
                await self._pace.turn(number, known)
                begun = asyncio.Event()
                task = asyncio.ensure_future(self._one(number, place, known, before, begun))
                if self._pace.ordered:
                    before = begun
                tasks.add(task)
                task.add_done_callback(tasks.discard)
                if not number % 64:
                    await asyncio.sleep(0)  # answers of a fast server are read, too
            while tasks:
                await asyncio.gather(*tasks)
        finally:
            for each in tasks:
                each.cancel()
        self.results.duration_ns = time.monotonic_ns() - start_ns
        self.results.late_ns = self._pace.late_ns
        return self.results

    async def _one(
        self, number: int, place: Place, known: Record, before: asyncio.Event, begun: asyncio.Event
    ) -> None:
        """Send a record, and count its outcome.

        before   is set when the record before it is on its way; this one is sent after that
        begun    is set when this one is on its way, or has failed
        """
        try:
            record, sent = await self._in_turn(place, before)
            outcome = await self._senders[sent.protocol].send(sent, self._speed, begun.set)
            await self._judge(number, record, known, outcome, sent)
        except Unreadable as error:
            self._note("unsent", number, known, str(error))
        except (Damaged, OSError) as error:
            self._note("unanswered", number, known, f"the record cannot be read: {error}")
        except Exception as error:  # every record is counted, and the replay goes on
            self._note("unanswered", number, known, f"{type(error).__name__}: {error}")
        finally:
            begun.set()
            self._pace.answered(number)
            self._free.release()
            self._told(self.results)

    async def _in_turn(self, place: Place, before: asyncio.Event) -> tuple[Record, Record]:
        """Return what _read returns, or raise its error, when the record before it is on its way.

        A record that cannot be sent keeps its place: the next one still comes after those before.
        """
        try:
            # Large messages would block the event loop, which may be that of a server.
            return await asyncio.to_thread(self._read, place)
        finally:
            await before.wait()

    def _read(self, place: Place) -> tuple[Record, Record]:
        """Return a record, and the form in which it is sent."""
        record = CaptureReader.read(place)
        return record, converted(record, self._protocol or record.protocol)

    async def _judge(
        self, number: int, record: Record, known: Record, outcome: Outcome, sent: Record
    ) -> None:
        results = self.results
        if outcome.ended or record.gone:
            results.counts["uncompared"] += 1
            return
        if outcome.status < 0:
            self._note("unanswered", number, known, outcome.text)
            return
        results.before_ns.append(record.duration_ns)
        results.now_ns.append(outcome.duration_ns)
        if self._comparison is None or record.cut or record.redacted or not record.has_answer:
            results.counts["uncompared"] += 1
        elif text := await asyncio.to_thread(self._comparison.difference, record, outcome, sent):
            self._note("differing", number, known, text)
        else:
            results.counts["equal"] += 1

    def _note(self, kind: str, number: int, record: Record, text: str) -> None:
        self.results.counts[kind] += 1
        if len(self.results.differences) < MOST_DIFFERENCES:
            self.results.differences.append(Difference(number, record, text))
