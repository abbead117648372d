"""OldestSlots: the oldest strategy, which batches the oldest request of each candidate sequence.

Source of the rules: ModelSequenceBatching.StrategyOldest in Triton's model_config.proto.
"""

from __future__ import annotations

from core.pipeline.batching.batcher import BatchLimits, choose
from core.pipeline.batching.queue import QueuedRequest
from core.pipeline.instances.runner import InstanceRunner
from core.pipeline.sequence.slots import InstanceSlots
from core.pipeline.sequence.states import States


class OldestSlots(InstanceSlots):
    """Slots of an instance with the oldest strategy. A slot is no row; it only counts a candidate."""

    def __init__(
        self, runner: InstanceRunner, count: int, limits: BatchLimits, states: States | None
    ):
        super().__init__(runner, count, states)
        self._limits = limits

    def next_batch(self, now_ns: int) -> tuple[list[QueuedRequest], int]:
        heads = sorted(self.ready(), key=lambda s: s.waiting[0].request.arrival_ns)
        if not heads:
            return [], 0
        count, again_ns = choose([s.waiting[0] for s in heads], self._limits, now_ns)
        return [self.take(sequence, now_ns) for sequence in heads[:count]], again_ns
