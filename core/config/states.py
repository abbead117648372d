"""Implicit state: tensors that the server keeps for a sequence, from one of its requests to the next.

Source of the rules: ModelSequenceBatching.State and InitialState in Triton's model_config.proto;
files are in <model>/initial_state/.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

import numpy as np

from core import dtypes
from core.config.messages import ModelConfig, ModelSequenceBatching
from core.dtypes import DataType
from core.errors import internal, invalid, unsupported
from core.native import strings
from core.tensor import Tensor

FOLDER = "initial_state"


@dataclass(frozen=True)
class StateSpec:
    """One tensor that the model takes as `input_name` and gives back, renewed, as `output_name`.

    dims      without the batch dimension, -1 for any size
    initial   what the first request of a sequence gets, with a batch dimension of 1 where the model
              has one; nobody writes to it
    """

    input_name: str
    output_name: str
    dtype: DataType
    dims: tuple[int, ...]
    initial: Tensor

    def fits(self, shape: tuple[int, ...], batched: bool) -> bool:
        """Whether a tensor of one request may be kept; `batched` for a model with a batch dimension."""
        whole = (1, *self.dims) if batched else self.dims
        return len(shape) == len(whole) and all(
            dim in (-1, size) for dim, size in zip(whole, shape, strict=True)
        )


def states_of(config: ModelConfig, model_directory: Path) -> dict[str, StateSpec]:
    """The states of a validated configuration, by output name; reads the files of their first values.

    Raises CoreError(INVALID) for a file of the wrong size and a state that does not fit into memory,
    CoreError(UNSUPPORTED) for a file outside of the model's directory, and CoreError(INTERNAL) for one
    that cannot be read.
    """
    return {
        state.output_name: _state(state, config, model_directory)
        for state in config.sequence_batching.state
    }


def _state(
    state: ModelSequenceBatching.State, config: ModelConfig, model_directory: Path
) -> StateSpec:
    label = f"state '{state.input_name}' of model '{config.name}'"
    dtype = dtypes.BY_NUMBER[state.data_type]
    dims = tuple(state.dims)
    # A variable dimension begins with one element, as in Triton, unless initial_state says another.
    first = tuple(state.initial_state[0].dims if state.initial_state else (abs(d) for d in dims))
    shape = (1, *first) if config.max_batch_size else first
    file_name = state.initial_state[0].data_file if state.initial_state else ""
    if not file_name:
        try:
            initial = zeros(state.input_name, dtype, shape)
        except (MemoryError, ValueError):
            raise invalid(f"{label} has the shape {list(shape)}, too large for memory") from None
    else:
        raw = _read(file_name, label, model_directory)
        _check_size(raw, dtype, shape, file_name, label)
        initial = Tensor(state.input_name, dtype, shape, raw=raw)
    return StateSpec(state.input_name, state.output_name, dtype, dims, initial)


def zeros(name: str, dtype: DataType, shape: tuple[int, ...]) -> Tensor:
    """Zeros that nobody can write to; of BYTES, empty strings."""
    text = dtype is dtypes.BYTES
    array = np.full(shape, b"", object) if text else np.zeros(shape, dtype.numpy)
    array.flags.writeable = False
    return Tensor(name, dtype, shape, array=array)


def _read(file_name: str, label: str, model_directory: Path) -> bytes:
    folder = model_directory / FOLDER
    path = folder / file_name
    if not path.resolve().is_relative_to(folder.resolve()):
        raise unsupported(
            f"initial_state data_file '{file_name}' for {label} is outside of the folder '{FOLDER}' "
            "of its model"
        )
    try:
        return path.read_bytes()
    except OSError as error:
        raise internal(
            f"failed to open text file for read {path}: {error.strerror}; it is the initial_state "
            f"data_file for {label}"
        ) from None


def _check_size(
    raw: bytes, dtype: DataType, shape: tuple[int, ...], file_name: str, label: str
) -> None:
    """Triton's text for a file that is too short, also where it is too long."""
    count = math.prod(shape)
    if dtype is dtypes.BYTES:
        elements, left = strings.count(raw)
        if left or elements != count:
            raise invalid(
                f"initial_state setting expects {count} strings, but the data provided from "
                f"{file_name} has {elements}, with {left} bytes behind them, for {label}; each string "
                "has its length before it, as 4 bytes, little endian"
            )
    elif len(raw) != count * dtype.byte_size:
        size = count * dtype.byte_size
        raise invalid(
            f"initial_state setting expects {size} bytes, but the data provided from {file_name} "
            f"{'only ' if len(raw) < size else ''}has {len(raw)} bytes, for {label}"
        )
