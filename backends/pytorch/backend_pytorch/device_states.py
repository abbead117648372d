"""Keep growable states in place: each state of a sequence has a range of addresses that gets more memory.

results ─► [GrowableStates] ─► copies in the stream of computation ─► the next request of the sequence.

The range of a state lives as long as a value of the state. The next value is written over this one, after
the computation that has read it.
"""

from __future__ import annotations

from collections.abc import Collection
from typing import Any
from weakref import WeakValueDictionary

from core.batch import Batch
from core.config.states import StateSpec
from core.devices import pools
from core.errors import CoreError, invalid
from core.tensor import Tensor

# Address → range. One for all instances: the next request of a sequence may run on another one.
_RANGES: WeakValueDictionary[int, Any] = WeakValueDictionary()


class GrowableStates:
    """The states with `use_growable_memory` of one instance's model. Call it on the starting thread."""

    def __init__(self, streams: Any):
        self._streams = streams

    def names(self, batch: Batch) -> Collection[str]:
        """Return the output names of the states that grow in place.

        A state that is also an output does not: its client may read it while the next request writes it.
        """
        states, outputs = batch.signature.states, batch.signature.outputs
        if self._streams.place is None:
            return ()
        return [name for name, spec in states.items() if spec.grows and name not in outputs]

    def kept(self, name: str, parts: list[Any], batch: Batch) -> list[Any]:
        """Start the copies of a state to the ranges of its sequences, and return the copies.

        parts   the state of each request, on the instance's GPU, not in memory of any range
        A state gets memory of its own if there is no range. If it is too large, its request fails.
        """
        spec = batch.signature.states[name]
        return [self._kept(i, part, spec, batch) for i, part in enumerate(parts)]

    def _kept(self, i: int, part: Any, spec: StateSpec, batch: Batch) -> Any:
        size = part.numel() * part.element_size()
        request = batch.requests[i]
        # Rows that fill the slots of a batch, and warm-up, belong to no sequence.
        lasts = size and request.correlation_id
        found = self._range(request.inputs.get(spec.input_name)) if lasts else None
        if found is None:
            return part.clone()
        if size > found.limit:
            batch.fail(i, self._too_large(spec.output_name, size, found.limit, batch))
            return part  # not used: the request has its response
        memory = found.memory(size)
        return part.clone() if memory is None else self._streams.grown(memory, part)

    def _range(self, before: Tensor | None) -> Any | None:
        """Return the range of a state's value, or else a new one; None without growable memory."""
        if before is not None and before.device == self._streams.place:
            found = _RANGES.get(self._streams.address(before.value))
            if found is not None:
                return found
        made = pools.current().growable(self._streams.place[1])
        if made is not None:
            _RANGES[made.address] = made
        return made

    def _too_large(self, name: str, size: int, limit: int, batch: Batch) -> CoreError:
        option = f"--cuda-virtual-address-size={self._streams.place[1]}"
        return invalid(
            f"model '{batch.signature.name}': state '{name}' has {size} bytes, {option}:{limit} permits "
            f"{limit} bytes; give more, such as {option}:{size}, or do without use_growable_memory"
        )
