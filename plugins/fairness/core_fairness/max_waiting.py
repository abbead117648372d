"""MaxWaiting: bounds the requests of a caller that wait for a version of a model, in all workers together."""

from __future__ import annotations

from core.backend import Model
from core.errors import Exhausted
from core.request import InferenceRequest
from core_fairness.callers import Callers
from core_fairness.flow import CallerFlow, Waiting
from core_fairness.waiting_table import WaitingTable


class MaxWaiting:
    """The bound `max_waiting` of a fair queue. Steps of an ensemble have none. Event loop only.

    table   counts the requests that wait in all workers; None without other workers
    """

    def __init__(self, model: Model, callers: Callers, table: WaitingTable | None):
        self._name, self._of = model.name, f"{model.name} {model.version}"
        self._callers = callers
        self._table = table

    def error(self, request: InferenceRequest, flow: CallerFlow) -> Exhausted | None:
        """Return the error of a request whose caller has too many that wait in this worker; else None."""
        most = self._callers.shares.max_waiting
        if not most or flow.waiting < most or request.parent is not None:
            return None
        return self._exhausted(flow, most)

    def enter(self, entry: Waiting) -> Exhausted | None:
        """Count a request that waits, if it is not counted yet.

        Return an error, and count nothing, if too many wait in all workers.
        """
        most, flow = self._callers.shares.max_waiting, entry.flow
        if not most or self._table is None or flow is None or entry.request.parent is not None:
            return None
        if entry.slot >= 0:
            return None
        if flow.place is None:
            flow.place = self._table.place_of(flow.name, self._of)
        slot = self._table.enter(flow.place, most)
        if slot is None:
            return self._exhausted(flow, most)
        entry.slot = slot
        return None

    def leave(self, entry: Waiting) -> None:
        """Count a request no more, since it waits no longer."""
        if self._table is not None:
            self._table.leave(entry.slot)

    def _exhausted(self, flow: CallerFlow, most: int) -> Exhausted:
        text = f"caller '{flow.name}' has {most} requests waiting for model '{self._name}'"
        return Exhausted(f"{text}, its limit is {most} (max_waiting)", 1.0)
