"""Tensors from the type annotations of a method, which are read and not evaluated.

annotation ─► Field: the tensor, and the kind of value that adapters/tensor_fields.py makes of it
"""

from __future__ import annotations

import ast
from typing import NamedTuple

from core_importers.declared import DATATYPES, Declared
from core_importers.python_file import PythonFile

_SCALARS = {"int": "INT64", "float": "FP64", "bool": "BOOL", "str": "STRING"}
_ARRAYS = {
    "numpy.ndarray": "array",
    "numpy.typing.NDArray": "array",
    "torch.Tensor": "tensor",
}
_OTHERS = {
    "bytes": "bytes",
    "bytearray": "bytes",
    "pandas.DataFrame": "frame",
    "PIL.Image.Image": "image",
    "PIL.Image": "image",
    "pathlib.Path": "file",
}
_LISTS = {"list", "typing.List", "collections.abc.Sequence", "typing.Sequence"}
_STREAMS = {
    f"{module}.{name}"
    for module in ("typing", "collections.abc")
    for name in ("AsyncGenerator", "Generator", "AsyncIterator", "Iterator", "Iterable")
}
# Names of numpy and torch → datatypes.
_DTYPES = {
    "float16": "FP16", "float32": "FP32", "float64": "FP64", "float": "FP32", "double": "FP64",
    "half": "FP16", "bfloat16": "BF16", "bool": "BOOL", "bool_": "BOOL",
    **{each.lower(): each for each in DATATYPES if "INT" in each},
}  # fmt: skip


class Field(NamedTuple):
    """A parameter or result.

    kind      see adapters/tensor_fields.py
    stream    whether it is a generator of such values
    """

    tensor: Declared
    kind: str
    stream: bool = False


def field(file: PythonFile, name: str, node: ast.expr | None, optional: bool = False) -> Field:
    """Return the field of a parameter or result `name` with the annotation `node`.

    Without an annotation, or with one that no tensor can hold, the field is JSON in a STRING.
    """
    node = _parsed(node)
    if (inner := _optional(file, node)) is not None:
        return field(file, name, inner, optional)
    json = Field(Declared(name, "STRING", (1,), optional), "json")
    if node is None:
        return json
    shape, dtype = None, ""
    origin = file.origin(node.value if isinstance(node, ast.Subscript) else node)
    if isinstance(node, ast.Subscript):
        inside = node.slice.elts if isinstance(node.slice, ast.Tuple) else [node.slice]
        if origin in ("typing.Annotated", "typing_extensions.Annotated"):
            shape, dtype = _metadata(file, inside[1:])
            found = field(file, name, inside[0], optional)
            return _with_shape(found, shape, dtype)
        if origin in _STREAMS:
            return field(file, name, inside[0], optional)._replace(stream=True)
        if origin in _LISTS:
            return _list(file, name, inside[0], optional) or json
    if origin in _SCALARS:
        kind = "text" if origin == "str" else "value"
        return Field(Declared(name, _SCALARS[origin], (1,), optional), kind)
    kind = _ARRAYS.get(origin) or _OTHERS.get(origin) or "json"
    return json._replace(kind=kind)


def _list(file: PythonFile, name: str, inner: ast.expr, optional: bool) -> Field | None:
    """Return the field of a list of numbers or texts, or of lists of them; None for other elements."""
    found = field(file, name, inner)
    if found.kind in ("value", "text"):
        return Field(Declared(name, found.tensor.datatype, (-1,), optional), "list")
    if found.kind == "list":
        return Field(
            Declared(name, found.tensor.datatype, (-1, *found.tensor.dims), optional), "list"
        )
    return None


def _with_shape(found: Field, shape: tuple[int, ...] | None, dtype: str) -> Field:
    """Return the field of an array or tensor with this shape, and the datatype of `dtype` or else FP64.

    If `shape` is None, or the field is of another kind, it stays as it is.
    """
    if found.kind not in ("array", "tensor") or shape is None:
        return found
    return found._replace(
        tensor=found.tensor._replace(datatype=_DTYPES.get(dtype, "FP64"), dims=shape)
    )


def _metadata(file: PythonFile, nodes: list[ast.expr]) -> tuple[tuple[int, ...] | None, str]:
    """Return the shape in the validator Shape, and the dtype in DType, among the notes of Annotated.

    Returns None or "" for a validator that is missing or has no literal.
    """
    shape, dtype = None, ""
    for node in nodes:
        if not isinstance(node, ast.Call) or len(node.args) != 1:
            continue
        try:
            value = ast.literal_eval(node.args[0])
        except ValueError:
            continue
        validator = file.origin(node.func).rpartition(".")[2]
        if validator == "Shape" and isinstance(value, (tuple, list)):
            shape = tuple(int(each) for each in value)
        elif validator == "DType":
            dtype = str(value)
    return shape, dtype


def _parsed(node: ast.expr | None) -> ast.expr | None:
    """Return the expression in a quoted annotation, None if it is no expression; any other one unchanged."""
    if isinstance(node, ast.Constant) and isinstance(node.value, str):
        try:
            return ast.parse(node.value, mode="eval").body
        except SyntaxError:
            return None
    return node


def _optional(file: PythonFile, node: ast.expr | None) -> ast.expr | None:
    """Return T of `T | None` and Optional[T]; None for another annotation."""
    if isinstance(node, ast.Subscript) and file.origin(node.value) == "typing.Optional":
        return node.slice
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr):
        sides = [node.left, node.right]
        kept = [
            each for each in sides if not (isinstance(each, ast.Constant) and each.value is None)
        ]
        return kept[0] if len(kept) == 1 else None
    return None
