"""Window: how much of a model's work is let through at once, so that its instances stay busy, and no more.

What is let through waits in the model's own queue for a moment, in the order of its arrival: a larger window
would undo the turns, a smaller one would leave instances idle.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from core.config import ModelConfig

if TYPE_CHECKING:
    from core.pipeline import Chain

REFRESH_NS = 1_000_000_000
# The second batch that an instance takes while it executes the first hides the way to it. With executions of
# this length the way does not matter, but the second batch would go before the turns of others.
LONG_NS = 5_000_000
_MOST_PIPELINED = (
    3  # batches; an instance that takes more of them executes them at once, as engines do
)


class Window:
    """The window of one model version. Event loop only.

    clock_ns  monotonic nanoseconds
    chain     None until the version is ready
    limit     most that is let through at once: rows if the model batches dynamically, else requests
    batch     most of it that one batch takes
    execution most of it that one instance takes at once: a batch, or the requests of an engine
    """

    def __init__(self, config: ModelConfig, clock_ns: Callable[[], int]):
        self.chain: Chain | None = None
        self.rows = config.max_batch_size > 0 and config.HasField("dynamic_batching")
        sequences = config.HasField("sequence_batching")
        self.batch = max(1, config.max_batch_size) if self.rows or sequences else 1
        self.limit = self.execution = self.batch
        self._now_ns = clock_ns
        self._decoupled = config.model_transaction_policy.decoupled
        self._capacity = self.batch
        self._least = 1
        self._pipelined = False
        self._read_ns = 0

    def make_room(self, used: int) -> bool:
        """Return whether one more request may be let through, with `used` inside.

        Raise the limit for it if an instance is idle.
        """
        if self._now_ns() - self._read_ns > REFRESH_NS:
            self._read()
        if used < self.limit:
            return True
        # An instance is idle with nothing to do: it takes more than its configuration says, such as a
        # decoupled model that answers after its execution.
        chain = self.chain
        if chain is None or self._pipelined or chain.pending or not chain.has_idle:
            return False
        self.limit = used + 1
        return True

    def ended(self, used: int) -> None:
        """Lower a raised limit to the `used` that are left inside when a request has ended.

        Requests that wait for the answer of an equal one raise the limit while they occupy no instance. Their
        places must not go to other requests. The streams of a decoupled model do: its limit stays.
        """
        if self.limit > self._capacity and not self._decoupled:
            self.limit = max(self._capacity, min(self.limit, used))

    def adapt(self) -> None:
        """Learn from requests that are left inside when an instance has taken its batch, while others wait.

        They are too many: they cannot share a batch, because of their shapes or of preferred sizes.
        """
        chain = self.chain
        if chain is None or chain.has_idle:
            return
        pending = chain.pending
        if pending > self._least:
            self.limit = max(self._least, self.limit - 1)
        elif not pending and self.limit < self._capacity:
            self.limit += 1

    def _read(self) -> None:
        """Read from the chain how much its instances take; their number may have changed."""
        self._read_ns = self._now_ns()
        if (chain := self.chain) is None:
            return
        before = self._capacity
        serving = chain.executing
        self._least = max(1, len(serving))
        self._capacity = 0
        self._pipelined = False
        for instance in chain.opened:
            if instance.name not in serving:
                continue
            ahead = max(1, instance.ahead) if instance.placement == "callback" else 1
            if 1 < ahead <= _MOST_PIPELINED and not self._decoupled:
                self._pipelined = True
                if self._mean_ns(chain) >= LONG_NS:
                    ahead = 1
            self._capacity += ahead * self.batch
            if ahead > _MOST_PIPELINED:
                self.execution = ahead * self.batch
        self._capacity = max(1, self._capacity)
        if self._capacity != before:
            self.limit = self._capacity

    @staticmethod
    def _mean_ns(chain: Chain) -> float:
        """Return the mean duration of an execution; 0 before the first."""
        times = [size.compute_infer for size in chain.statistics.batch_sizes.values()]
        count = sum(each.count for each in times)
        return sum(each.ns for each in times) / count if count else 0.0
