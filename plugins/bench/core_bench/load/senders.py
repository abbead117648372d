"""Sender: sends one request at a time from a coroutine. Marks: when the parts of its answer were seen."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Protocol

from core_bench.native.engine import now_ns


@dataclass
class Marks:
    """Times of the responses to one request, in nanoseconds; `tokens` is 0 if the server counts none."""

    first: int = 0
    last: int = 0
    responses: int = 0
    tokens: int = 0
    gaps: list[int] = field(default_factory=list)

    def response(self) -> None:
        now = now_ns()
        if self.first:
            self.gaps.append(now - self.last)
        else:
            self.first = now
        self.last = now
        self.responses += 1


@dataclass(frozen=True)
class SequenceFields:
    """What a request of a sequence says: id 0 for none."""

    id: int = 0
    start: bool = False
    end: bool = False


class Refused(Exception):
    """The error of a request, with its text as users see it."""


class Lost(Refused):
    """The same, because no connection could be made."""


class Sender(Protocol):
    """Of one event loop."""

    async def open(self) -> None: ...

    async def send(self, number: int, fields: SequenceFields, marks: Marks) -> None:
        """Send request `number`, and return when it is answered. Raises Refused, or Lost."""

    async def close(self) -> None: ...
