"""Complete a configuration: tensors, batches of several streams, sequences.

config.pbtxt ─► fill ─► [complete] ─► normalise ─► validate.  `backend: "tracker"` is enough.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

from backend_tracker.settings import settings_of
from backend_tracker.tensors import INPUTS, OPTIONAL, OUTPUTS
from core.backend import Backend
from core.completion import default_max_batch_size
from core.config import ModelConfig

_MOST_FRAMES = 64  # in a batch; a frame takes some microseconds
_MOST_STREAMS = 4096  # of an instance
_IDLE_US = 10_000_000  # a stream may pause longer than other sequences


def complete(config: ModelConfig, path: Path, backend: Backend) -> None:
    """Fill in what config.pbtxt leaves out, in place.

    path   folder of the version
    Raises CoreError(INVALID) for a wrong parameter.
    """
    settings_of(config, path)
    described: list[Any] = [*config.input, *config.output]
    if not config.max_batch_size and not any(each.dims for each in described):
        config.max_batch_size = default_max_batch_size(backend, "tracker", _MOST_FRAMES)
    if config.WhichOneof("scheduling_choice") is None:
        sequences = config.sequence_batching
        sequences.oldest.max_candidate_sequences = _MOST_STREAMS
        sequences.max_sequence_idle_microseconds = _IDLE_US
    if not config.input:
        for name in INPUTS:
            config.input.add(name=name, optional=name in OPTIONAL)
    if not config.output:
        for name in OUTPUTS:
            config.output.add(name=name)
    batched = config.max_batch_size > 0
    inputs: list[Any] = list(config.input)
    for each in inputs:
        if each.name in INPUTS:
            _complete(each, *INPUTS[each.name])
            # Streams with different numbers of detections share a batch.
            each.allow_ragged_batch = each.allow_ragged_batch or batched
    outputs: list[Any] = list(config.output)
    for each in outputs:
        if each.name in OUTPUTS:
            _complete(each, *OUTPUTS[each.name])


def _complete(entry: Any, dtype: Any, dims: tuple[int, ...]) -> None:
    entry.data_type = entry.data_type or dtype.number
    if not entry.dims:
        entry.dims.extend(dims)
