"""Complete a configuration: tensors, many answers to a request, a limit of the wait for a free decoder.

config.pbtxt ─► fill ─► [complete] ─► normalise ─► validate.  `backend: "video"` is enough.
"""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from backend_video.settings import settings_of
from backend_video.tensors import INPUTS, Kind, outputs_of
from core.backend import Backend
from core.config import ModelConfig
from core.config.messages import ModelQueuePolicy

_WAIT_US = 10_000_000  # for a free decoder


def complete(config: ModelConfig, path: Path, backend: Backend) -> None:
    """Fill in what config.pbtxt leaves out, in place.

    path   folder of the version
    Raises CoreError(INVALID) for a wrong parameter.
    """
    settings = settings_of(config, path.parent)
    config.model_transaction_policy.decoupled = True
    if config.WhichOneof("scheduling_choice") is None:
        policy = config.dynamic_batching.default_queue_policy
        policy.timeout_action = ModelQueuePolicy.REJECT
        policy.default_timeout_microseconds = _WAIT_US
    inputs: Any = config.input
    outputs: Any = config.output
    if not inputs:
        for name in INPUTS:
            inputs.add(name=name, optional=True)
    if not outputs:
        for name in outputs_of(settings.format):
            outputs.add(name=name)
    _complete(inputs, INPUTS)
    _complete(outputs, outputs_of(settings.format))


def _complete(entries: Any, known: Mapping[str, Kind]) -> None:
    for entry in entries:
        if entry.name in known:
            dtype, dims = known[entry.name]
            entry.data_type = entry.data_type or dtype.number
            if not entry.dims:
                entry.dims.extend(dims)
