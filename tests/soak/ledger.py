"""What became of every request: answered right, refused as documented, given up by its client, or worse."""

from __future__ import annotations

import collections
import contextlib
import re
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass


@dataclass(frozen=True)
class Refusal:
    """An error that a request may get.

    name      in the table
    pattern   the whole message
    window    the request must have overlapped a window of this name; "" where it may come at any time
    """

    name: str
    pattern: str
    window: str = ""

    def fits(self, message: str) -> bool:
        return re.fullmatch(self.pattern, message, re.DOTALL) is not None


class Windows:
    """Time intervals by name: from before a request for something until after its end."""

    def __init__(self) -> None:
        self._spans: dict[str, list[list[float]]] = collections.defaultdict(list)

    @contextlib.contextmanager
    def open(self, name: str) -> Iterator[None]:
        span = self.begin(name)
        try:
            yield
        finally:
            span[1] = time.monotonic()

    def begin(self, name: str) -> list[float]:
        """[begin, end] of a window that lasts until its end is written."""
        span = [time.monotonic(), float("inf")]
        self._spans[name].append(span)
        return span

    def overlaps(self, name: str, begin: float, end: float) -> bool:
        return any(begin <= span[1] and span[0] <= end for span in self._spans[name])


class Truth:
    """A value that changes: the right value depends on the time.

    During a change both the old and the new value are right; after its confirmation only the new one.
    """

    def __init__(self, value: int) -> None:
        self.value = value
        self._spans = {value: [[0.0, float("inf")]]}

    @contextlib.contextmanager
    def change(self, value: int) -> Iterator[None]:
        old, self.value = self.value, value
        span = [time.monotonic(), float("inf")]
        self._spans.setdefault(value, []).append(span)
        yield
        self._spans[old][-1][1] = time.monotonic()

    def holds(self, value: int, begin: float, end: float) -> bool:
        return any(b <= end and begin <= e for b, e in self._spans.get(value, ()))


EXITING = (
    Refusal("server ends", r".*(Server exiting|GRPC server is shutting down).*", "exit"),
    Refusal("connection closed at the end", r"closed: .*", "exit"),
)


@dataclass
class Line:
    """A row of the table."""

    offered: int = 0
    right: int = 0
    given_up: int = 0
    refused: collections.Counter[str] = None  # type: ignore[assignment]

    def __post_init__(self) -> None:
        self.refused = collections.Counter()


class Ledger:
    """`begin` when a request is sent, one of the others when it is over; nothing may be left. Loop thread."""

    def __init__(self, windows: Windows) -> None:
        self.windows = windows
        self.lines: dict[str, Line] = collections.defaultdict(Line)
        self.wrong: list[str] = []  # answers that are not right, errors that are not documented
        self.twice: list[str] = []
        self._open: dict[int, tuple[str, float]] = {}
        self._number = 0
        self._latencies: list[float] = []

    def begin(self, traffic: str) -> int:
        """The number of a new request: it is its content too."""
        self._number += 1
        self._open[self._number] = (traffic, time.monotonic())
        self.lines[traffic].offered += 1
        return self._number

    def begun_at(self, number: int) -> float:
        return self._open[number][1]

    def right(self, number: int) -> None:
        if found := self._close(number, "answered"):
            self.lines[found[0]].right += 1
            self._latencies.append(time.monotonic() - found[1])

    def give_up(self, number: int) -> None:
        """The client went before the answer, as it meant to."""
        if found := self._close(number, "given up"):
            self.lines[found[0]].given_up += 1

    def bad(self, number: int, why: str) -> None:
        if found := self._close(number, why):
            self.wrong.append(f"{found[0]} {number}: {why[:300]}")

    def refuse(
        self,
        number: int,
        message: str,
        allowed: Sequence[Refusal],
        ending: bool = True,
        since: float | None = None,
    ) -> None:
        """Record that the request got an error.

        ending   whether the stop of the server is an excuse
        since    begin of its sequence or stream, of which any event may be its excuse
        """
        if found := self._close(number, message):
            traffic, begin = found
            begin = begin if since is None else since
            for refusal in (*allowed, *(EXITING if ending else ())):
                excused = not refusal.window or self.windows.overlaps(
                    refusal.window, begin, time.monotonic()
                )
                if excused and refusal.fits(message):
                    self.lines[traffic].refused[refusal.name] += 1
                    return
            self.wrong.append(f"{traffic} {number}: refused with {message[:300]!r}")

    def _close(self, number: int, what: str) -> tuple[str, float] | None:
        found = self._open.pop(number, None)
        if found is None:
            self.twice.append(f"{number}: {what[:200]}")
        return found

    @property
    def in_flight(self) -> int:
        return len(self._open)

    def lost(self) -> list[str]:
        """Requests without an answer."""
        now = time.monotonic()
        return [f"{name} {n}: sent {now - at:.1f} s ago" for n, (name, at) in self._open.items()]

    def latency_ms(self, quantile: float) -> float:
        """Of right answers; a quantile of the client's view, its own waiting included."""
        ordered = sorted(self._latencies)
        return (
            ordered[min(len(ordered) - 1, int(quantile * len(ordered)))] * 1000 if ordered else 0.0
        )
