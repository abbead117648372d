"""Read a program of Paddle 1 and 2, a .pdmodel file, without Paddle.

bytes ─► [program_desc] ─► Program.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from backend_paddle.messages import ProgramDesc
from backend_paddle.tensors import TYPES, Port, Ports, Program, Weight

_EMPTY = "@EMPTY@"  # the name of an argument that is left out
_DENSE_TENSOR = 7  # the type of a variable; others are lists, readers, scopes


def read_program_desc(content: bytes) -> Program:
    """Return what a file says. Raises ValueError with the reason for one that is damaged."""
    message = ProgramDesc()
    try:
        message.ParseFromString(content)
    except Exception as error:  # its class differs between implementations of Protocol Buffers
        raise ValueError(str(error)) from None
    if not message.blocks:
        raise ValueError("it has no operators")
    _check_arguments(message.blocks)
    block = message.blocks[0]
    variables = {each.name: each for each in block.vars}
    given = _ordered(op for op in block.ops if op.type == "feed")
    taken = _ordered(op for op in block.ops if op.type == "fetch")
    inputs = {name: _port(name, variables) for name in _arguments(given, "outputs")}
    outputs = {name: _port(name, variables) for name in _arguments(taken, "inputs")}
    if not outputs:
        raise ValueError(
            "it has no operator 'fetch', and so no outputs; export it for inference, with "
            "paddle.jit.save or paddle.static.save_inference_model"
        )
    weights = {
        each.name: _weight(each)
        for each in block.vars
        if each.persistable and each.type.type == _DENSE_TENSOR
    }
    return Program(Ports(inputs, outputs), weights)


def _check_arguments(blocks: Any) -> None:
    """Raise ValueError for an operator that names a tensor which is not there: Paddle's process would end."""
    known = {each.name for block in blocks for each in block.vars} | {_EMPTY}
    for block in blocks:
        for op in block.ops:
            for argument in (*op.inputs, *op.outputs):
                for name in argument.arguments:
                    if name not in known:
                        raise ValueError(
                            f"an operator '{op.type}' names the tensor '{name}', which it does not describe"
                        )


def _ordered(ops: Iterable[Any]) -> list[Any]:
    """Return operators in the order of the inputs or outputs that they stand for."""
    return sorted(ops, key=lambda op: next((each.i for each in op.attrs if each.name == "col"), 0))


def _arguments(ops: Iterable[Any], side: str) -> list[str]:
    parameter = "Out" if side == "outputs" else "X"
    found = []
    for op in ops:
        names = [
            name
            for each in getattr(op, side)
            if each.parameter == parameter
            for name in each.arguments
        ]
        if len(names) != 1:
            raise ValueError(f"an operator '{op.type}' has {len(names)} tensors instead of one")
        found += names
    return found


def _port(name: str, variables: dict[str, Any]) -> Port:
    if name not in variables:
        raise ValueError(f"it does not describe its tensor '{name}'")
    tensor = variables[name].type.dense_tensor.tensor
    return Port(name, _type(tensor.data_type), tuple(tensor.dims))


def _weight(variable: Any) -> Weight:
    tensor = variable.type.dense_tensor.tensor
    return Weight(_type(tensor.data_type), tuple(tensor.dims))


def _type(number: int) -> str:
    return TYPES.get(number, f"type {number}")
