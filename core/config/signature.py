"""Signature: the inputs and outputs of a model version, in the form that the request pipeline uses.

A load makes one from the completed configuration. Parsing, checks and batching of requests read it.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from pathlib import Path
from sys import intern

from core import dtypes
from core.config.messages import ModelConfig, ModelInput, ModelOutput
from core.config.states import StateSpec, states_of
from core.dtypes import DataType
from core.errors import internal, invalid, unsupported
from core.request import NEWEST


@dataclass(frozen=True)
class InputSpec:
    """One input. Shapes have no batch dimension; -1 is any size.

    dims           shape that clients send
    reshape        shape that the model gets; None if it equals dims
    optional       a request may omit it
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
    """One output. Shapes have no batch dimension; -1 is any size.

    dims      shape that clients get
    reshape   shape that the model returns; None if it equals dims
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

    Names are interned: a lookup with a name from a model's code compares no text.

    max_batch_size   0 for a model without a batch dimension
    decoupled        a request may have any number of responses
    states           implicit states of sequences, by the name of their output; clients do not see them
    sequence         the model has sequence_batching: its requests belong to sequences
    """

    name: str
    version: int
    inputs: dict[str, InputSpec]
    outputs: dict[str, OutputSpec]
    max_batch_size: int
    decoupled: bool
    states: dict[str, StateSpec] = field(default_factory=dict)
    sequence: bool = False


def signature_of(config: ModelConfig, model_directory: Path, version: int = NEWEST) -> Signature:
    """Return the signature of a completed, validated configuration; reads label files and initial states.

    model_directory   the directory of the model, not of a version
    Raises CoreError(UNSUPPORTED) for a file outside of the directory, CoreError(INTERNAL) for a file that
    cannot be read, CoreError(INVALID) for an unknown datatype and for an initial state of the wrong size.
    """
    return Signature(
        name=intern(config.name),
        version=version,
        inputs={intern(io.name): _input(io) for io in config.input},
        outputs={
            intern(io.name): _output(io, config.name, model_directory) for io in config.output
        },
        max_batch_size=config.max_batch_size,
        decoupled=config.model_transaction_policy.decoupled,
        states=states_of(config, model_directory),
        sequence=config.HasField("sequence_batching"),
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
    labels = _labels(io, model, model_directory) if io.label_filename else None
    return OutputSpec(intern(io.name), _dtype(io), tuple(io.dims), _reshape(io), labels)


def _labels(output: ModelOutput, model: str, model_directory: Path) -> tuple[str, ...]:
    """Return the class names in the label file of an output: line n names class n, \\n or \\r\\n ends a line.

    Raises CoreError(UNSUPPORTED) if the path leaves the model's directory, also through a link.
    Raises CoreError(INTERNAL) if the file cannot be read as UTF-8.
    """
    path = model_directory / output.label_filename
    if not path.resolve().is_relative_to(model_directory.resolve()):
        raise unsupported(
            f"label file path '{path}' for output '{output.name}' in model '{model}' is outside "
            "model directory"
        )
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        missing = isinstance(error, FileNotFoundError)
        raise internal(
            f"failed to open text file for read {path}: "
            f"{'No such file or directory' if missing else error}; it is the label file for output "
            f"'{output.name}' in model '{model}'"
        ) from error
    return tuple(text.removesuffix("\n").split("\n")) if text else ()


def _reshape(io: ModelInput | ModelOutput) -> tuple[int, ...] | None:
    return tuple(io.reshape.shape) if io.HasField("reshape") else None


def _dtype(io: ModelInput | ModelOutput) -> DataType:
    if (found := dtypes.BY_NUMBER.get(io.data_type)) is None:
        raise invalid(f"'{io.name}' has data_type {int(io.data_type)}, which is none")
    return found
