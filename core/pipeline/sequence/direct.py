"""The direct strategy: each sequence has a row of the batch for itself, from START to END.

Source of the rules: ModelSequenceBatching.StrategyDirect in Triton's model_config.proto.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from core.config.states import zeros
from core.pipeline.batching.queue import Waiting
from core.pipeline.instances.worker import Worker
from core.pipeline.sequence.lane import Lane
from core.pipeline.sequence.states import States
from core.request import InferenceRequest
from core.response import Reply


class DirectLane(Lane):
    """Invariant: the request of slot i is row i of the batch; rows without one are filled.

    delay_ns    longest wait for a fuller batch
    least       rows that need not wait, at least 1
    filler      makes the control tensors of a filled row
    """

    def __init__(
        self,
        worker: Worker,
        places: int,
        delay_ns: int,
        utilization: float,
        filler: Callable[[InferenceRequest, bool], None],
        states: States | None,
    ):
        super().__init__(worker, places, states)
        self._delay_ns = delay_ns
        self._least = max(1, math.ceil(utilization * places))
        self._filler = filler

    def next_batch(self, now_ns: int) -> tuple[list[Waiting], int]:
        ready = self.ready()
        if not ready:
            return [], 0
        oldest_ns = min(s.waiting[0].request.arrival_ns for s in ready)
        if len(ready) < self._least and now_ns - oldest_ns < self._delay_ns:
            return [], oldest_ns + self._delay_ns
        oldest = min(ready, key=lambda s: s.waiting[0].request.arrival_ns)
        together = [s for s in ready if s.waiting[0].key == oldest.waiting[0].key]
        rows: list[Waiting | None] = [None] * (max(s.slot for s in together) + 1)
        for sequence in together:
            rows[sequence.slot] = self.take(sequence, now_ns)
        pattern = next(row for row in rows if row is not None)
        return [row or self._filled(pattern) for row in rows], 0

    def _filled(self, pattern: Waiting) -> Waiting:
        """A row that no sequence has: zeros in the shape of the others, READY false."""
        request = InferenceRequest(
            pattern.request.model_name,
            {n: zeros(n, t.dtype, t.shape) for n, t in pattern.request.inputs.items()},
        )
        request.arrival_ns = pattern.request.arrival_ns
        self._filler(request, False)
        filled = Waiting(request, Reply(request))
        filled.counts = False
        return filled
