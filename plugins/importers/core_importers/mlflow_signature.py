"""The signature in an MLmodel file, as inputs and outputs of config.pbtxt.

A column is [-1, 1], a row for each row of the data frame. A tensor has its shape. Types that no tensor can
hold (arrays, objects, maps) are JSON texts.
"""

from __future__ import annotations

import json
from typing import Any

from core.errors import invalid
from core_importers.declared import Declared

_COLUMNS = {
    "boolean": "BOOL",
    "integer": "INT32",
    "long": "INT64",
    "float": "FP32",
    "double": "FP64",
    "string": "STRING",
    "binary": "STRING",
    "datetime": "STRING",
}
_DTYPES = {
    "bool": "BOOL",
    "uint8": "UINT8",
    "uint16": "UINT16",
    "uint32": "UINT32",
    "uint64": "UINT64",
    "int8": "INT8",
    "int16": "INT16",
    "int32": "INT32",
    "int64": "INT64",
    "float16": "FP16",
    "float32": "FP32",
    "float64": "FP64",
    "object": "STRING",
    "str": "STRING",
}


class Signature:
    """Inputs, outputs and parameters of an MLmodel file.

    inputs, outputs   [] without a signature
    plain             whether another runtime than MLflow gets the same values: there are no parameters, and
                      each input and output is a tensor, or a required column of numbers, bools or texts
    of_tensors        whether there are inputs, and all of them are tensors
    """

    def __init__(self, document: dict[str, Any], unnamed_input: str, unnamed_output: str):
        signature = document.get("signature") or {}
        found_inputs = _specs(signature, "inputs")
        found_outputs = _specs(signature, "outputs")
        self.inputs = [_declared(each, unnamed_input) for each in found_inputs]
        self.outputs = [_declared(each, unnamed_output) for each in found_outputs]
        self.parameters = [_parameter(each) for each in _specs(signature, "params")]
        self.plain = all(map(_is_plain, [*found_inputs, *found_outputs])) and not self.parameters
        self.of_tensors = bool(found_inputs) and all(
            each.get("type") == "tensor" for each in found_inputs
        )


def _specs(signature: dict[str, Any], kind: str) -> list[dict[str, Any]]:
    text = signature.get(kind)
    try:
        found = json.loads(text) if isinstance(text, str) else text or []
    except ValueError as error:
        raise invalid(f"MLmodel: signature.{kind} is no JSON: {error}") from error
    if not isinstance(found, list) or not all(isinstance(each, dict) for each in found):
        raise invalid(f"MLmodel: signature.{kind} is {found!r:.80}, expected a list of objects")
    return found


def _declared(spec: dict[str, Any], unnamed: str) -> Declared:
    name = str(spec.get("name") or unnamed)
    optional = not spec.get("required", True)
    if spec.get("type") == "tensor":
        tensor = spec.get("tensor-spec") or {}
        dtype = str(tensor.get("dtype", ""))
        datatype = "STRING" if dtype.startswith("str") else _DTYPES.get(dtype)
        if datatype is None:
            raise invalid(
                f"MLmodel: tensor '{name}' has the dtype '{dtype}', which no tensor can have"
            )
        return Declared(name, datatype, tuple(map(int, tensor.get("shape") or [1])), optional)
    return Declared(name, _COLUMNS.get(str(spec.get("type")), "STRING"), (-1, 1), optional)


def _is_plain(spec: dict[str, Any]) -> bool:
    kind = spec.get("type")
    if kind == "tensor":
        return True
    return kind in _COLUMNS and kind not in ("binary", "datetime") and spec.get("required", True)


def _parameter(spec: dict[str, Any]) -> Declared:
    """Return an inference parameter as an optional input; a list or object as JSON text."""
    kind = str(spec.get("type", spec.get("dtype", "string")))
    shape = spec.get("shape")
    dims = (-1,) if shape else (1,)
    return Declared(str(spec.get("name")), _COLUMNS.get(kind, "STRING"), dims, True)
