"""The oldest strategy: batches of the oldest requests of the candidate sequences, one of each.

Source of the rules: ModelSequenceBatching.StrategyOldest in Triton's model_config.proto.
"""

from __future__ import annotations

from core.pipeline.batching.batcher import BatchLimits, choose
from core.pipeline.batching.queue import Waiting
from core.pipeline.instances.worker import Worker
from core.pipeline.sequence.lane import Lane
from core.pipeline.sequence.states import States


class OldestLane(Lane):
    """Candidates have no row of their own; slots only count them."""

    def __init__(self, worker: Worker, places: int, limits: BatchLimits, states: States | None):
        super().__init__(worker, places, states)
        self._limits = limits

    def next_batch(self, now_ns: int) -> tuple[list[Waiting], int]:
        heads = sorted(self.ready(), key=lambda s: s.waiting[0].request.arrival_ns)
        if not heads:
            return [], 0
        count, again_ns = choose([s.waiting[0] for s in heads], self._limits, now_ns)
        return [self.take(sequence, now_ns) for sequence in heads[:count]], again_ns
