"""Group: models that share a device take turns. Member: one of them. Turn: what one of them sends at once.

FairQueue ─► Member ─► RoundRobin ─► [Group] ─► Turn ─► FairQueue.send_next
"""

from __future__ import annotations

import time
from collections.abc import Callable

from core_fairness import settings
from core_fairness.clients import Clients
from core_fairness.fair_queue import FairQueue
from core_fairness.round_robin import Flow, RoundRobin

_FIRST_NS = 1_000_000.0  # estimate of a turn, before the first has ended
_SMOOTHING = 1 / 8


class Turn:
    """The requests that a model has let through in one turn: one execution, if they share a batch.

    begun_ns   when it began
    charged    nanoseconds that the model was charged at its beginning
    size       what the requests take of the window of the model
    open       number of them that have not ended
    """

    __slots__ = ("begun_ns", "charged", "member", "open", "size")

    def __init__(self, member: Member, begun_ns: int):
        self.member = member
        self.begun_ns = begun_ns
        self.charged = member.mean_ns
        self.size = 0
        self.open = 0

    @property
    def has_room(self) -> bool:
        """Whether one more request fits into the execution."""
        return self.size < self.member.queue.window.execution


class Member(Flow):
    """One model version in its group: a flow whose costs are the nanoseconds of its turns.

    mean_ns   of its last turns
    turn      that its requests join now; None for those that pass without a turn
    """

    __slots__ = ("group", "mean_ns", "queue", "turn")

    def __init__(self, group: Group, queue: FairQueue, weight: float):
        super().__init__(weight)
        self.group = group
        self.queue = queue
        self.mean_ns = _FIRST_NS
        self.turn: Turn | None = None

    @property
    def ready(self) -> bool:
        return self.queue.may_send

    def ended(self, turn: Turn) -> None:
        """Count a request that has ended."""
        turn.open -= 1
        if not turn.open and turn is not self.turn:
            self.group.end(turn)


class Group:
    """Lets the requests of several models through, so that each gets its share of the time of a device.

    At most `at_once` turns are open, of all models together. Event loop only.

    inside   clients with steps inside, in any model
    """

    def __init__(
        self,
        name: str,
        group: settings.Group,
        clock_ns: Callable[[], int] = time.monotonic_ns,
    ):
        self.name = name
        self.inside = Clients()
        self.at_once = group.at_once
        self.members: list[Member] = []
        self._weights = group.models
        self._now_ns = clock_ns
        self._open: list[Turn] = []
        self._turns: RoundRobin[Member] = RoundRobin()
        self._pumping = False

    @property
    def open(self) -> int:
        """Number of turns that are open."""
        return len(self._open)

    def add(self, queue: FairQueue) -> None:
        """Let a model take part. It must have no request yet."""
        queue.member = Member(self, queue, self._weights.get(queue.name, 1.0))
        self.members.append(queue.member)

    def remove(self, queue: FairQueue) -> None:
        """Drop a model, which has no request any more."""
        if queue.member is not None and queue.member in self.members:
            self.members.remove(queue.member)
            self._turns.drop(queue.member)

    def pump(self, member: Member) -> None:
        """Let requests through, as long as there is room.

        member   a model that may be able to send now
        """
        if member.ready:
            self._turns.enter(member)
        if self._pumping:
            return
        self._pumping = True
        try:
            while len(self._open) < self.at_once and (first := self._turns.next()) is not None:
                turn = Turn(first, self._now_ns())
                self._turns.charge(first, turn.charged)
                self._open.append(turn)
                self._fill(turn)
            self._join(member)
        finally:
            self._pumping = False

    def end(self, turn: Turn) -> None:
        """Close a turn whose requests have ended. Its model is charged the time that it took."""
        self._open.remove(turn)
        member, took_ns = turn.member, self._now_ns() - turn.begun_ns
        self._turns.correct(member, took_ns - turn.charged)
        if turn.size:
            first = member.mean_ns == _FIRST_NS
            member.mean_ns += (took_ns - member.mean_ns) * (1 if first else _SMOOTHING)

    def set(self, group: settings.Group) -> None:
        """Take other weights, and another number of turns that may be open."""
        self.at_once, self._weights = group.at_once, group.models
        for member in self.members:
            member.weight = group.models.get(member.queue.name, member.weight)

    def _join(self, member: Member) -> None:
        """Let requests into an open turn of their model, if no other model waits."""
        if not member.ready or any(each.ready for each in self.members if each is not member):
            return
        for turn in list(self._open):
            if turn.member is member and turn.has_room:
                self._fill(turn)

    def _fill(self, turn: Turn) -> None:
        """Let requests of the model through, as many as one execution takes."""
        member = turn.member
        member.turn = turn
        try:
            while turn.has_room and member.ready:
                if not member.queue.send_next():
                    break
        finally:
            member.turn = None
            if not turn.open:
                self.end(turn)
