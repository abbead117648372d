"""DirectSlots: the direct strategy, in which each sequence has one row of the batch from START to END.

Source of the rules: ModelSequenceBatching.StrategyDirect in Triton's model_config.proto.
"""

from __future__ import annotations

import math
from collections.abc import Callable

from core.config import ModelConfig
from core.config.states import zeros
from core.pipeline.batching.queue import QueuedRequest
from core.pipeline.instances.runner import InstanceRunner
from core.pipeline.sequence.slots import InstanceSlots
from core.pipeline.sequence.states import States
from core.request import InferenceRequest
from core.response import Reply


class DirectSlots(InstanceSlots):
    """Slots of an instance with the direct strategy.

    Invariant: the request of slot i is row i of the batch; zeros fill the rows of slots without a request.

    controls   (request, ready): sets the control tensors; here for rows without a request
    """

    def __init__(
        self,
        runner: InstanceRunner,
        config: ModelConfig,
        controls: Callable[[InferenceRequest, bool], None],
        states: States | None,
    ):
        super().__init__(runner, max(1, config.max_batch_size), states)
        self._controls = controls
        self.configure(config)

    def configure(self, config: ModelConfig) -> None:
        direct = config.sequence_batching.direct
        self._delay_ns = direct.max_queue_delay_microseconds * 1000
        # So many requests start at once.
        least = math.ceil(direct.minimum_slot_utilization * len(self.sequences))
        self._least = max(1, least)

    def next_batch(self, now_ns: int) -> tuple[list[QueuedRequest], int]:
        ready = self.ready()
        if not ready:
            return [], 0
        oldest_ns = min(s.waiting[0].request.arrival_ns for s in ready)
        if len(ready) < self._least and now_ns - oldest_ns < self._delay_ns:
            return [], oldest_ns + self._delay_ns
        oldest = min(ready, key=lambda s: s.waiting[0].request.arrival_ns)
        together = [s for s in ready if s.waiting[0].key == oldest.waiting[0].key]
        rows: list[QueuedRequest | None] = [None] * (max(s.slot for s in together) + 1)
        for sequence in together:
            rows[sequence.slot] = self.take(sequence, now_ns)
        pattern = next(row for row in rows if row is not None)
        return [row or self._filled(pattern) for row in rows], 0

    def _filled(self, pattern: QueuedRequest) -> QueuedRequest:
        """Return a row for a slot without a request: zeros in the shape of `pattern`, READY false."""
        request = InferenceRequest(
            pattern.request.model_name,
            {n: zeros(n, t.dtype, t.shape) for n, t in pattern.request.inputs.items()},
        )
        request.arrival_ns = pattern.request.arrival_ns
        self._controls(request, False)
        filled = QueuedRequest(request, Reply(request))
        filled.counts = False
        return filled
