"""OldestSlots: the oldest strategy, which batches the oldest request of each candidate sequence.

Source of the rules: ModelSequenceBatching.StrategyOldest in Triton's model_config.proto.
"""

from __future__ import annotations

from core.config import ModelConfig
from core.pipeline.batching.batcher import BatchLimits, choose
from core.pipeline.batching.queue import QueuedRequest
from core.pipeline.instances.runner import InstanceRunner
from core.pipeline.sequence.slots import InstanceSlots
from core.pipeline.sequence.states import States


class OldestSlots(InstanceSlots):
    """Slots of an instance with the oldest strategy. A slot is no row; it only counts a candidate."""

    def __init__(self, runner: InstanceRunner, config: ModelConfig, states: States | None):
        most = config.sequence_batching.oldest.max_candidate_sequences
        super().__init__(runner, max(1, most), states)
        self.configure(config)

    def configure(self, config: ModelConfig) -> None:
        oldest = config.sequence_batching.oldest
        self._limits = BatchLimits(
            most_rows=max(1, config.max_batch_size),
            preferred=tuple(oldest.preferred_batch_size),
            delay_ns=oldest.max_queue_delay_microseconds * 1000,
            alone=not config.max_batch_size,
        )

    def next_batch(self, now_ns: int) -> tuple[list[QueuedRequest], int]:
        heads = sorted(self.ready(), key=lambda s: s.waiting[0].request.arrival_ns)
        if not heads:
            return [], 0
        count, again_ns = choose([s.waiting[0] for s in heads], self._limits, now_ns)
        return [self.take(sequence, now_ns) for sequence in heads[:count]], again_ns
