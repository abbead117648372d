"""CallerFlow: the requests of one caller that wait for one model. Waiting: one of them."""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass
from typing import TYPE_CHECKING

from core.errors import CoreError
from core.request import InferenceRequest
from core.response import InferenceResponse, Reply
from core_fairness.clients import Clients
from core_fairness.cost import Usage
from core_fairness.round_robin import Flow

if TYPE_CHECKING:
    from core_fairness.group import Turn
    from frontends.shared.access.bucket_table import BucketRange


@dataclass(slots=True)
class Counts:
    """What a caller has got from a model, or all callers.

    requests   let through
    cost       of these: rows or tokens
    refused    because of a bound
    left       that were cancelled, or too late, while they waited
    wait_ns    of the requests let through
    """

    requests: int = 0
    cost: float = 0.0
    refused: int = 0
    left: int = 0
    wait_ns: int = 0

    def add(self, other: Counts) -> None:
        self.requests += other.requests
        self.cost += other.cost
        self.refused += other.refused
        self.left += other.left
        self.wait_ns += other.wait_ns


class Waiting:
    """A request in a fair queue; and the listener of its inner reply, once it is let through.

    flow     of its caller; None for a request from inside the server
    size     what it takes of the window
    cost     what its caller is charged: first an estimate, for models with tokens
    reply    of the caller
    inside   counts it, if it is a step of an ensemble that was let through
    slot     of WaitingTable, which counts it; -1 if it does not
    """

    __slots__ = (
        "cost",
        "flow",
        "inside",
        "level",
        "on_cancel",
        "on_end",
        "reply",
        "request",
        "sent",
        "size",
        "slot",
        "timer",
        "turn",
        "usage",
    )

    def __init__(
        self,
        request: InferenceRequest,
        flow: CallerFlow | None,
        size: int,
        cost: float,
        on_end: Callable[[Waiting], None],
    ):
        self.request = request
        self.flow = flow
        self.size = size
        self.cost = cost
        self.level = 0
        self.reply = Reply(request)
        self.sent = False
        self.slot = -1
        self.inside: Clients | None = None
        self.turn: Turn | None = None  # of its model in a group
        self.usage: Usage | None = None  # counts its tokens, if these are what it costs
        self.timer: asyncio.TimerHandle | None = None  # of the queue's timeout
        self.on_cancel: Callable[[], None] | None = None
        self.on_end = on_end

    def __call__(self, item: InferenceResponse | CoreError | None, final: bool) -> None:
        if self.usage is not None:
            self.usage.take(item)
        if final and self.inside is not None:
            self.inside.leave(
                self.request
            )  # its answer may begin the next step, which waits for its turn
        self.reply.send(item, final)
        if final:
            self.on_end(self)


class CallerFlow(Flow):
    """The requests of one caller that wait for one model, in the order in which they run. Event loop only.

    number     of the caller (frontends.shared.access)
    name       of the caller
    waiting    number of its requests that wait
    in_flight  number of its requests that were let through and have not ended
    counts     what it has got
    labelled   whether it has a label of its own in metrics
    place      where all workers count its requests that wait; None as long as none was counted
    """

    __slots__ = ("_levels", "counts", "in_flight", "labelled", "name", "number", "place", "waiting")

    def __init__(self, number: int, name: str, weight: float, *, labelled: bool = True):
        super().__init__(weight)
        self.number = number
        self.name = name
        self.labelled = labelled
        self.waiting = 0
        self.in_flight = 0
        self.counts = Counts()
        self.place: BucketRange | None = None
        # Priority level → its requests, the oldest first. Most flows have one level.
        self._levels: dict[int, OrderedDict[Waiting, None]] = {}

    @property
    def ready(self) -> bool:
        """Whether a request waits."""
        return self.waiting > 0

    @property
    def idle(self) -> bool:
        """Whether no request waits or runs."""
        return not (self.waiting or self.in_flight)

    def add(self, entry: Waiting, level: int) -> None:
        """Queue a request behind those of its priority level; a smaller level goes first."""
        entry.level = level
        if (line := self._levels.get(level)) is None:
            line = OrderedDict()
            self._levels[level] = line
            if len(self._levels) > 1:
                self._levels = dict(sorted(self._levels.items()))
        line[entry] = None
        self.waiting += 1

    def first(self) -> Waiting:
        """Return the request that runs next. There must be one."""
        return next(iter(next(iter(self._levels.values()))))

    def count(self, level: int) -> int:
        """Return how many requests of a priority level wait."""
        return len(self._levels.get(level, ()))

    def last(self, level: int) -> Waiting:
        """Return the request of a level that would run last. There must be one."""
        return next(reversed(self._levels[level]))

    def remove(self, entry: Waiting) -> None:
        """Remove a request that waits."""
        line = self._levels[entry.level]
        del line[entry]
        if not line:
            del self._levels[entry.level]
        self.waiting -= 1
