"""Callers: the flows of one model by caller, and the counts of callers that were not seen for long."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable, Iterator
from itertools import islice

from core_fairness.flow import CallerFlow, Counts
from core_fairness.settings import Shares

MOST_IDLE = 1000  # callers whose counts are kept though they have no request; others are added up
MOST_LABELLED = 20  # callers of a model with labels of their own in metrics
MOST_NAMED = 100  # the same, with those that have a weight of their own
ALL_CALLERS = "all callers"


class Callers:
    """The callers of one model. Event loop only.

    others    what the callers have got whose flows were dropped
    shares    their weights and bounds
    by_caller whether they take turns; else all have one flow
    """

    def __init__(self, name_of: Callable[[int], str], *, by_caller: bool = True):
        self.others = Counts()
        self.shares = Shares()
        self.by_caller = by_caller
        self._name_of = name_of
        self._flows: OrderedDict[int, CallerFlow] = OrderedDict()  # the idle ones by their last end
        self._labelled = 0

    def __iter__(self) -> Iterator[CallerFlow]:
        return iter(self._flows.values())

    def __len__(self) -> int:
        return len(self._flows)

    def of(self, number: int) -> CallerFlow:
        """Return the flow of a caller.

        number   of the caller (frontends.shared.access)
        """
        if not self.by_caller:
            number = 0
        flow = self._flows.get(number)
        if flow is None:
            name = self._name_of(number) if number else ALL_CALLERS
            most = MOST_NAMED if name in self.shares.weights else MOST_LABELLED
            labelled = self._labelled < most
            self._labelled += labelled
            weight = self.shares.weight(name)
            flow = self._flows[number] = CallerFlow(number, name, weight, labelled=labelled)
        return flow

    def set(self, shares: Shares) -> None:
        """Take other weights and bounds."""
        self.shares = shares
        for flow in self:
            flow.weight = shares.weight(flow.name)

    def longest(self, level: int) -> CallerFlow:
        """Return the caller with the most waiting requests of a level in proportion to its weight."""
        return max(self, key=lambda each: each.count(level) / each.weight)

    def ended(self, flow: CallerFlow) -> None:
        """Note that a request of a caller has ended. If there are too many callers, drop idle ones."""
        if not flow.idle:
            return
        self._flows.move_to_end(flow.number)
        excess = len(self._flows) - MOST_IDLE
        if excess <= 0:
            return
        idle = (each for each in self if each.idle and not (each.listed or each.labelled))
        for each in list(islice(idle, excess)):
            self.others.add(each.counts)
            del self._flows[each.number]
