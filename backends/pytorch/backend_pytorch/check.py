"""Refuse a configuration that the program contradicts. Errors name the values of both.

TorchModel ─► [check] ─► instance.  TorchScript and Python files have names and kinds only. Files of
torch.export have datatypes and shapes, packages those of their arguments.
"""

from __future__ import annotations

from typing import Any

from backend_pytorch.naming import config_inputs, config_outputs, places
from backend_pytorch.program import Port, Program
from core import dtypes
from core.config import ModelConfig
from core.errors import CoreError, invalid


def check(config: ModelConfig, program: Program) -> None:
    """Compare names, kinds, datatypes and shapes with those that the program has.

    Raises CoreError(INVALID) for the first tensor that does not fit.
    """
    if program.takes is not None:
        found = places(config_inputs(config), program.takes, "input", config.name)
        for io in config.input:
            port = program.takes[found[io.name]]
            _check_kind(config, io, port, program)
            if not io.allow_ragged_batch:
                _check_port(config, io, port, "input")
    found = places(config_outputs(config), program.gives, "output", config.name)
    scattered = {name for each in config.batch_output for name in each.target_name}
    if program.gives is not None:
        for output in config.output:
            if output.name not in scattered:
                _check_port(config, output, program.gives[found[output.name]], "output")


def _check_kind(config: ModelConfig, io: Any, port: Port, program: Program) -> None:
    """Raise CoreError(INVALID) unless text goes to a List[str], and numbers go to a tensor.

    Text must have one dimension: the batch with dims [] or [1], or without batching the only one. A Python
    file does not tell which arguments are text, so for it only the dimensions are checked.
    """
    is_text = io.data_type == dtypes.BYTES.number
    if is_text != port.text and program.kind != "Python":
        kind, wanted = ("List[str]", "TYPE_STRING") if port.text else ("Tensor", "a number")
        raise invalid(
            f"unable to load model '{config.name}', argument '{port.name}' of forward is a {kind}: "
            f"data_type of input '{io.name}' must be {wanted}, it is {_name(io.data_type)}"
        )
    dims = _dims(io)
    if is_text and (len(dims) > 1 or (config.max_batch_size and dims not in ([], [1]))):
        raise invalid(
            f"a List[str] has 1 dimension: input '{io.name}' of model '{config.name}' has dims {dims} "
            f"with max_batch_size {config.max_batch_size}; use [ -1 ] without batching, [ 1 ] with it"
        )


def _check_port(config: ModelConfig, io: Any, port: Port, kind: str) -> None:
    if port.dtype is not None and io.data_type != port.dtype.number:
        raise invalid(
            f"unable to load model '{config.name}', configuration expects datatype {_name(io.data_type)} "
            f"for {kind} '{io.name}', model provides {port.dtype.config_name}"
        )
    if port.dims is not None and not _fits(config, io, port.dims):
        raise _wrong_shape(config, io, port.dims)


def _fits(config: ModelConfig, io: Any, expected: tuple[int, ...]) -> bool:
    dims = _dims(io)
    if not expected and not config.max_batch_size:  # clients see a scalar as [1]
        return all(dim == 1 for dim in dims)
    whole = [-1, *dims] if config.max_batch_size else dims
    if len(whole) != len(expected) or (config.max_batch_size and expected[0] != -1):
        return False
    return all(-1 in (size, dim) or size == dim for size, dim in zip(whole, expected, strict=True))


def _wrong_shape(config: ModelConfig, io: Any, expected: tuple[int, ...]) -> CoreError:
    batching = f" behind a batch dimension (max_batch_size {config.max_batch_size})"
    return invalid(
        f"model '{config.name}', tensor '{io.name}': the model expects {len(expected)} dimensions (shape "
        f"{list(expected)}) but the model configuration specifies {_dims(io)}"
        f"{batching if config.max_batch_size else ''}"
    )


def _dims(io: Any) -> list[int]:
    return list(io.reshape.shape) if io.HasField("reshape") else list(io.dims)


def _name(number: int) -> str:
    return dtypes.BY_NUMBER[number].config_name
