"""Data frames in requests: columns that become the inputs of a model.

pd                one input for each column, as MLServer's PandasCodec writes them (content type of a request)
dataframe_split   {"columns": [...], "data": [[...]]}, as pandas writes orient="split" (member of generate)
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from core import dtypes
from core.config import InputSpec, Signature
from core.errors import CoreError, invalid
from core.native import strings
from core.request import InferenceRequest
from core.tensor import Tensor
from frontends.http.codec.json_tensor import filled, read_tensor

FRAME = "pd"
SPLIT = "dataframe_split"


def fit_frame(request: InferenceRequest, signature: Signature) -> None:
    """Give the columns of a data frame, in `request.inputs`, the shapes of the model's inputs.

    If the model has only one input and no column has its name, all columns together become that input, side
    by side in their order; CoreError(INVALID) is raised if they do not fit. Otherwise each column with the
    name of an input gets the input's shape, if it fits. Nothing changes if an input or an output of the
    request is in shared memory.
    """
    columns = list(request.inputs.values())
    if request.shared:  # columns in shared memory stay where they are
        return
    if (spec := _only_input(signature, request.inputs)) is not None:
        request.inputs = {spec.name: _table(columns, spec, signature)}
        return
    for column in columns:
        if (known := signature.inputs.get(column.name)) is not None:
            shape = filled(_dims(known, signature), column.count)
            if shape is not None:
                request.inputs[column.name] = column.reshaped(shape)


def read_split(
    frame: Any, request: InferenceRequest, signature: Signature, most_bytes: int
) -> None:
    """Add the columns of a data frame in the form of `dataframe_split` to the inputs of a request.

    If the model has only one input and no column has its name, all columns together become that input.
    Otherwise each column becomes the input of its name.
    most_bytes   limit of each tensor in bytes
    Raises CoreError(INVALID) for another form and for columns that do not fit the inputs, and what
    `read_tensor` raises.
    """
    names, rows = _split(frame)
    if (spec := _only_input(signature, names)) is not None:
        shape = _table_shape(len(rows), len(names), spec, signature)
        values = [value for row in rows for value in row]
        request.inputs[spec.name] = read_tensor(spec.name, spec.dtype, shape, values, most_bytes)
        return
    for at, name in enumerate(names):
        if (known := signature.inputs.get(name)) is None:
            raise invalid(
                f"column '{name}' of '{SPLIT}' is no input of model '{signature.name}', whose inputs are "
                + ", ".join(f"'{each}'" for each in signature.inputs)
            )
        found = filled(_dims(known, signature), len(rows))
        if found is None:
            raise _misfit(len(rows), 1, known, signature)
        values = [row[at] for row in rows]
        request.inputs[name] = read_tensor(name, known.dtype, found, values, most_bytes)


def _split(frame: Any) -> tuple[list[str], list[list[Any]]]:
    """Return the names of the columns and the rows. Raises CoreError(INVALID) for another form."""
    names = frame.get("columns") if type(frame) is dict else None
    rows = frame.get("data") if type(frame) is dict else None
    if type(names) is not list or type(rows) is not list or {*map(type, names)} - {str}:
        raise invalid(
            f"'{SPLIT}' must be an object with 'columns', a list of names, and 'data', a list of rows"
        )
    if len(set(names)) < len(names):
        raise invalid(f"'{SPLIT}' has a column twice")
    for number, row in enumerate(rows):
        if type(row) is not list or len(row) != len(names):
            raise invalid(
                f"row {number} of '{SPLIT}' is no list of {len(names)} values, one for each column"
            )
    return names, rows


def _only_input(signature: Signature, columns: Any) -> InputSpec | None:
    """Return the model's only input if all columns together form it: none of them has its name.

    Return None if the model has other than one input, if a column has its name, and without columns.

    columns   names of the columns
    """
    if len(signature.inputs) != 1 or not columns or not signature.inputs.keys().isdisjoint(columns):
        return None
    return next(iter(signature.inputs.values()))


def _table(columns: Sequence[Tensor], spec: InputSpec, signature: Signature) -> Tensor:
    rows = columns[0].count
    for column in columns:
        if column.count != rows:
            raise invalid(
                f"column '{column.name}' of the data frame has {column.count} rows, column "
                f"'{columns[0].name}' has {rows}"
            )
    shape = _table_shape(rows, len(columns), spec, signature)
    arrays = [_column(column, spec) for column in columns]
    return Tensor(spec.name, spec.dtype, shape, array=np.stack(arrays, axis=1))


def _table_shape(rows: int, columns: int, spec: InputSpec, signature: Signature) -> tuple[int, int]:
    dims = _dims(spec, signature)
    if len(dims) != 2 or dims[0] not in (-1, rows) or dims[1] not in (-1, columns):
        raise _misfit(rows, columns, spec, signature)
    return rows, columns


def _column(column: Tensor, spec: InputSpec) -> np.ndarray:
    """Return the elements of a column, converted to the datatype of an input.

    Raises CoreError(INVALID) if numpy's rule "same_kind" does not allow to convert them, if only one of
    the two datatypes is BYTES or BF16, and if the data of the column have another size than its shape.
    """
    if column.dtype is dtypes.BYTES:
        is_whole = strings.count(column.raw) == (column.count, 0)
    else:
        is_whole = memoryview(column.raw).nbytes == column.count * column.dtype.byte_size
    if not is_whole:
        raise invalid(
            f"column '{column.name}' of the data frame has other data than its shape says"
        )
    found = column.array.reshape(-1)
    wanted = spec.dtype.numpy
    if column.dtype is spec.dtype:
        return found
    kinds = {column.dtype, spec.dtype}
    # Arrays of BF16 have bit patterns, which are no numbers.
    if kinds & {dtypes.BYTES, dtypes.BF16} or not np.can_cast(found.dtype, wanted, "same_kind"):
        raise invalid(
            f"column '{column.name}' of the data frame is {column.dtype}, input '{spec.name}' is {spec.dtype}"
        )
    return found.astype(wanted)


def _dims(spec: InputSpec, signature: Signature) -> tuple[int, ...]:
    batched = signature.max_batch_size > 0 and not spec.shape_tensor
    return (-1, *spec.dims) if batched else tuple(spec.dims)


def _misfit(rows: int, columns: int, spec: InputSpec, signature: Signature) -> CoreError:
    return invalid(
        f"a data frame of {rows} rows and {columns} columns does not fit input '{spec.name}' of model "
        f"'{signature.name}', which takes {list(_dims(spec, signature))}"
    )
