"""Read a program of Paddle 3, a .json file, without Paddle.

bytes ─► [pir] ─► Program.

Paddle writes short words: "p" a weight, "1.data" an input, "1.fetch" an output, "I" operands, "O" results,
"A" attributes, "OA" attributes of results, "TT" a type, "#" a kind, "%" a number of a value, "D" content.
"""

from __future__ import annotations

import json
from typing import Any

from backend_paddle.tensors import Port, Ports, Program, Weight

_TYPES = {
    "bool": "bool",
    "ui8": "uint8",
    "i8": "int8",
    "i16": "int16",
    "i32": "int32",
    "i64": "int64",
    "f8e4m3fn": "float8_e4m3fn",
    "f8e5m2": "float8_e5m2",
    "f16": "float16",
    "bf16": "bfloat16",
    "f32": "float32",
    "f64": "float64",
    "c64": "complex64",
    "c128": "complex128",
}
_MOST_ELEMENTS = 1 << 63  # dims are numbers of 64 bits
_PLACE_OF_NAME = 3  # among the attributes of a weight
_PLACE_OF_PERSISTABLE = 0  # among those of its result: a false one is not in the file of weights


def read_pir(content: bytes) -> Program:
    """Return what a file says. Raises ValueError with the reason for one that is damaged."""
    try:
        found: Any = json.loads(content)
    except (ValueError, RecursionError) as error:
        raise ValueError(f"it is no JSON: {error}") from None
    try:
        if found["base_code"]["magic"] != "pir":
            raise ValueError("it is JSON, but no program of Paddle")
        operators = found["program"]["regions"][0]["blocks"][0]["ops"]
        return _program(operators)
    except (AttributeError, KeyError, IndexError, TypeError, OverflowError) as error:
        raise ValueError(f"it is JSON, but no program of Paddle ({error!r})") from None


def _program(operators: list[dict[str, Any]]) -> Program:
    inputs, outputs, weights = {}, {}, {}
    values = {each["%"]: each for op in operators for each in _results(op)}
    for op in operators:
        if op["#"] == "p":
            if (op.get("OA") or [1])[_PLACE_OF_PERSISTABLE]:
                shape = _port(op["A"][_PLACE_OF_NAME], op)
                weights[shape.name] = Weight(shape.type, shape.dims)
        elif op["#"] == "1.data":
            port = _port(_attribute(op, "name"), op)
            inputs[port.name] = port
        elif op["#"] == "1.fetch":
            outputs[int(_attribute(op, "col"))] = _port(_attribute(op, "name"), op)
        for each in op["I"] if op["#"] != "p" else ():
            if each["%"] and each["%"] not in values:  # 0 stands for an operand that is left out
                raise ValueError(f"an operator '{op['#']}' takes a value that no other gives")
    if not outputs:
        raise ValueError(
            "it has no operator 'fetch', and so no outputs; export it for inference, with "
            "paddle.jit.save or paddle.static.save_inference_model"
        )
    taken = [outputs[place] for place in sorted(outputs)]
    return Program(Ports(inputs, {each.name: each for each in taken}), weights)


def _results(op: dict[str, Any]) -> list[dict[str, Any]]:
    found = op["O"]
    return [found] if isinstance(found, dict) else found


def _attribute(op: dict[str, Any], name: str) -> Any:
    found = {each["N"]: each["AT"]["D"] for each in op["A"]}
    return found[name]


def _port(name: str, op: dict[str, Any]) -> Port:
    """Return the tensor that an operator gives: {"#": "0.t_dtensor", "D": [type, dims, …]}."""
    kind, dims, *_ = _results(op)[0]["TT"]["D"]
    word = kind["#"].removeprefix("0.t_")
    str(name).encode()  # half of a character of UTF-16, which JSON can hold, is a ValueError
    sizes = tuple(map(int, dims))
    if any(abs(each) >= _MOST_ELEMENTS for each in sizes):
        raise ValueError(f"its tensor '{name}' has dims {list(sizes)}")
    return Port(str(name), _TYPES.get(word, word), sizes)
