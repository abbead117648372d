"""Warmup: sample requests that every instance executes before its version serves.

Source of the rules: ModelWarmup in Triton's model_config.proto; files are in <model>/warmup/.
"""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np

from core import dtypes
from core.config import ModelConfig, Signature
from core.config.messages import ModelWarmup
from core.errors import CoreError, internal, invalid
from core.native import strings
from core.pipeline.admit import Admission
from core.pipeline.sequence.states import initial_states
from core.request import InferenceRequest
from core.tensor import Tensor

FOLDER = "warmup"


def warmup_batches(
    config: ModelConfig, signature: Signature, directory: Path
) -> list[tuple[str, list[InferenceRequest]]]:
    """Return (sample name, its requests) in the order in which they run; a sample occurs `count` times.

    A batch size of n gives n requests of one row, 0 none; without a batch dimension, one. Reads files: use a
    worker thread. Raise CoreError: INVALID if a sample does not fit the model, INTERNAL for a read error.
    """
    found = []
    for sample in config.model_warmup:
        if not sample.batch_size:
            continue
        for _ in range(max(1, sample.count)):
            requests = [
                _request(config, signature, sample, directory) for _ in range(sample.batch_size)
            ]
            found.append((sample.name, requests if config.max_batch_size else requests[:1]))
    return found


def _request(
    config: ModelConfig, signature: Signature, sample: ModelWarmup, directory: Path
) -> InferenceRequest:
    tensors = {name: _tensor(name, each, config, directory) for name, each in sample.inputs.items()}
    # Samples may also contain controls and states, which clients cannot send.
    unsent = {name: t for name, t in tensors.items() if name not in signature.inputs}
    states = initial_states(signature)
    known = {c.name for c in config.sequence_batching.control_input} | states.keys()
    if unknown := set(unsent) - known:
        raise invalid(
            f"warmup sample '{sample.name}' of model '{config.name}' has the input "
            f"'{min(unknown)}', which the model does not have"
        )
    request = InferenceRequest(
        config.name, {name: t for name, t in tensors.items() if name in signature.inputs}
    )
    try:
        Admission(signature)(request)
    except CoreError as error:
        raise invalid(
            f"warmup sample '{sample.name}' of model '{config.name}': {error.message}"
        ) from None
    request.inputs.update(states | unsent)
    return request


def _tensor(name: str, sample: ModelWarmup.Input, config: ModelConfig, directory: Path) -> Tensor:
    dtype = dtypes.BY_NUMBER[sample.data_type]
    shape = (*([1] if config.max_batch_size else []), *sample.dims)
    count = math.prod(shape)
    if sample.input_data_file:
        size = 0 if dtype is dtypes.BYTES else count * dtype.byte_size  # admission counts strings
        raw = _file(sample.input_data_file, directory, size, f"'{name}' of model '{config.name}'")
        return Tensor(name, dtype, shape, raw=raw)
    if dtype is dtypes.BYTES:
        # Zero and random data are both empty strings, as in Triton.
        return Tensor(name, dtype, shape, raw=strings.encode(np.full(count, b"", object)))
    size = count * dtype.byte_size
    if not sample.random_data:
        return Tensor(name, dtype, shape, raw=bytes(size))
    if dtype is dtypes.BOOL:
        return Tensor(name, dtype, shape, array=np.random.default_rng().random(shape) < 0.5)
    return Tensor(name, dtype, shape, raw=np.random.default_rng().bytes(size))


def _file(file_name: str, directory: Path, size: int, label: str) -> bytes:
    """Return an input's data file. Raise CoreError if outside FOLDER, unreadable or under `size` bytes."""
    folder = (directory / FOLDER).resolve()
    path = (folder / file_name).resolve()
    if not path.is_relative_to(folder):
        raise invalid(
            f"warmup input_data_file '{file_name}' for input {label} is outside of the folder "
            f"'{FOLDER}' of its model"
        )
    try:
        raw = path.read_bytes()
    except OSError as error:
        raise internal(
            f"failed to open text file for read {path}: {error.strerror}; it is the warmup "
            f"input_data_file for input {label}"
        ) from None
    if len(raw) < size:
        raise invalid(
            f"warmup setting expects {size} bytes, but the data provided from {file_name} only has "
            f"{len(raw)} bytes, for input {label}"
        )
    return raw
