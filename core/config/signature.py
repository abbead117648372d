"""Signature: what a model takes and gives, in the form that the rooms of a request work with.

Made once per loaded version from its completed configuration; parse, admit, gather, split use it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from sys import intern

from core import dtypes
from core.config.labels import read_labels
from core.config.messages import ModelConfig, ModelInput, ModelOutput
from core.config.states import StateSpec, states_of
from core.dtypes import DataType
from core.errors import invalid
from core.request import NEWEST


@dataclass(frozen=True)
class InputSpec:
    """One input; shapes have no batch dimension, -1 is any size.

    dims           as clients send it
    reshape        as the model sees it, None for the same as dims
    optional       a request may leave it out
    ragged         requests of one batch may differ in its shape
    shape_tensor   its values are a shape; it has no batch dimension
    """

    name: str
    dtype: DataType
    dims: tuple[int, ...]
    reshape: tuple[int, ...] | None = None
    optional: bool = False
    ragged: bool = False
    shape_tensor: bool = False


@dataclass(frozen=True)
class OutputSpec:
    """One output; shapes have no batch dimension, -1 is any size.

    dims      as clients get it
    reshape   as the model gives it, None for the same as dims
    labels    name of each class, for the classification extension; None without a label file
    """

    name: str
    dtype: DataType
    dims: tuple[int, ...]
    reshape: tuple[int, ...] | None = None
    labels: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Signature:
    """Inputs and outputs of one model version, in the order of its configuration.

    Names are interned, so that those in a model's code are found without a comparison of their text.

    max_batch_size   0 for a model without a batch dimension
    decoupled        a request may have no response or several
    states           implicit states of sequences, by the name of their output; no client sees them
    """

    name: str
    version: int
    inputs: dict[str, InputSpec]
    outputs: dict[str, OutputSpec]
    max_batch_size: int
    decoupled: bool
    states: dict[str, StateSpec] = field(default_factory=dict)


def signature_of(config: ModelConfig, model_directory: Path, version: int = NEWEST) -> Signature:
    """The signature of a completed, validated configuration; reads label files and initial states.

    model_directory   the model's own directory, not a version's
    Raises CoreError(UNSUPPORTED) for a file outside of it, CoreError(INTERNAL) for one that cannot be
    read, CoreError(INVALID) for a datatype that is none and for an initial state of the wrong size.
    """
    return Signature(
        name=config.name,
        version=version,
        inputs={intern(io.name): _input(io) for io in config.input},
        outputs={
            intern(io.name): _output(io, config.name, model_directory) for io in config.output
        },
        max_batch_size=config.max_batch_size,
        decoupled=config.model_transaction_policy.decoupled,
        states=states_of(config, model_directory),
    )


def _input(io: ModelInput) -> InputSpec:
    return InputSpec(
        name=intern(io.name),
        dtype=_dtype(io),
        dims=tuple(io.dims),
        reshape=_reshape(io),
        optional=io.optional,
        ragged=io.allow_ragged_batch,
        shape_tensor=io.is_shape_tensor,
    )


def _output(io: ModelOutput, model: str, model_directory: Path) -> OutputSpec:
    labels = read_labels(io, model, model_directory) if io.label_filename else None
    return OutputSpec(intern(io.name), _dtype(io), tuple(io.dims), _reshape(io), labels)


def _reshape(io: ModelInput | ModelOutput) -> tuple[int, ...] | None:
    return tuple(io.reshape.shape) if io.HasField("reshape") else None


def _dtype(io: ModelInput | ModelOutput) -> DataType:
    if (found := dtypes.BY_NUMBER.get(io.data_type)) is None:
        raise invalid(f"'{io.name}' has data_type {int(io.data_type)}, which is none")
    return found
