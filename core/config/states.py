"""Implicit state: tensors that the server keeps for a sequence between its requests.

ModelSequenceBatching.State and InitialState in Triton's model_config.proto define the rules. Files with
initial values are in <model>/initial_state/.
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
    """One state tensor: the model reads it as `input_name` and returns its new value as `output_name`.

    dims      shape without the batch dimension; -1 is any size
    initial   value for the first request of a sequence, with a batch dimension of 1 if the model has one;
              read-only
    grows     whether the configuration has `use_growable_memory` for it
    """

    input_name: str
    output_name: str
    dtype: DataType
    dims: tuple[int, ...]
    initial: Tensor
    grows: bool = False

    def fits(self, shape: tuple[int, ...], batched: bool) -> bool:
        """Return whether the state of one request may have this shape.

        batched   the model has a batch dimension, and so has `shape`
        """
        whole = (1, *self.dims) if batched else self.dims
        return len(shape) == len(whole) and all(
            dim in (-1, size) for dim, size in zip(whole, shape, strict=True)
        )


def states_of(config: ModelConfig, model_directory: Path) -> dict[str, StateSpec]:
    """Return the states of a validated configuration, by output name; reads the files of initial values.

    Raises CoreError(INVALID) if a file has the wrong size or a state is too large for memory,
    CoreError(UNSUPPORTED) if a file is outside of <model>/initial_state/, and CoreError(INTERNAL) if a file
    cannot be read.
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
    # As in Triton, a variable dimension begins with one element unless initial_state gives its size.
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
    names = state.input_name, state.output_name
    return StateSpec(*names, dtype, dims, initial, grows=state.use_growable_memory)


def zeros(name: str, dtype: DataType, shape: tuple[int, ...]) -> Tensor:
    """Return a read-only tensor of zeros or, for BYTES, of empty strings."""
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
    """Raise CoreError(INVALID) unless `raw` has just the bytes or, for BYTES, the strings of `shape`."""
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
