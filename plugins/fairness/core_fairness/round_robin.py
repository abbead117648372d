"""RoundRobin: deficit round robin with precedence for flows that are seldom busy (RFC 8290, without CoDel).

    flow becomes busy ─► [RoundRobin.enter] … [RoundRobin.next] ─► whose turn it is ─► [RoundRobin.charge]

Pure: it knows neither requests nor time.
"""

from __future__ import annotations

import math
from collections import deque
from typing import Generic, TypeVar

_SMOOTHING = 1 / 32


class Flow:
    """What takes turns. Subclasses say whether it has something to send.

    weight    its share in proportion to the others
    credits   what it may still send in this turn; below 0 for a debt, which later turns pay
    """

    __slots__ = ("credits", "listed", "weight")

    def __init__(self, weight: float = 1.0):
        self.weight = weight
        self.credits = 0.0
        self.listed = False  # whether a RoundRobin has it in one of its lists

    @property
    def ready(self) -> bool:
        """Whether the flow has something that it may send now."""
        raise NotImplementedError


F = TypeVar("F", bound=Flow)


class RoundRobin(Generic[F]):
    """Decides which of several flows sends next. Over time each busy flow sends in proportion to its weight.

    A flow that was not busy goes before those that are, once: with one quantum. So a flow that sends seldom
    waits for no turn of the others, and a flow that sends much gains nothing from a pause.

    quantum   what a flow of weight 1 may send in one turn: the mean cost of what was sent
    """

    def __init__(self) -> None:
        self.quantum = 1.0
        self._mean = 0.0
        self._new: deque[F] = deque()
        self._old: deque[F] = deque()

    def enter(self, flow: F) -> None:
        """Let a flow take part, because it has something to send. Does nothing if it takes part already."""
        if not flow.listed:
            flow.listed = True
            flow.credits = min(flow.credits, 0.0) + self.quantum * flow.weight
            self._new.append(flow)

    def next(self) -> F | None:
        """Return the flow that sends now, None if none is ready. Call `charge` for what it sends."""
        new, old = self._new, self._old
        in_debt = 0  # flows in a row
        while new or old:
            flows = new or old
            flow = flows[0]
            if flow.credits <= 0:
                old.append(flows.popleft())
                flow.credits += self.quantum * flow.weight
                in_debt += 1
                if in_debt > len(new) + len(old):
                    self._pay_rounds()
                    in_debt = 0
            elif flow.ready:
                return flow
            else:
                flows.popleft()
                in_debt = 0
                if (
                    flows is new and old
                ):  # it gets no precedence again before the others had their turns
                    old.append(flow)
                else:
                    flow.listed = False
        return None

    def charge(self, flow: F, cost: float) -> None:
        """Charge a flow for what it sends, with a turn or without one."""
        self.correct(flow, cost)
        self._mean += (cost - self._mean) * (_SMOOTHING if self._mean else 1.0)
        self.quantum = max(self._mean, 1e-9)

    def correct(self, flow: F, cost: float) -> None:
        """Charge a flow `cost` more than before; less if it is negative. It pays a debt in turns to come."""
        flow.credits -= cost
        if flow.credits < 0 and not flow.listed:
            flow.listed = True
            self._old.append(flow)

    def drop(self, flow: F) -> None:
        """Take a flow out, which will send nothing any more."""
        for flows in (self._new, self._old):
            if flow in flows:
                flows.remove(flow)
        flow.listed = False

    def clear(self) -> None:
        """Take all flows out, because none has anything to send. Their debts are forgiven."""
        for flows in (self._new, self._old):
            for flow in flows:
                flow.listed = False
                flow.credits = 0.0
            flows.clear()

    def _pay_rounds(self) -> None:
        """Give all flows at once the turns until the first one that is ready has paid its debt."""
        flows = [*self._new, *self._old]
        rounds = [
            math.ceil(-flow.credits / (self.quantum * flow.weight)) for flow in flows if flow.ready
        ]
        # If none is ready, nobody waits for the debts to be paid.
        most = min(rounds, default=math.inf)
        for flow in flows:
            gain = most * self.quantum * flow.weight
            flow.credits = min(flow.credits + gain, self.quantum * flow.weight)
