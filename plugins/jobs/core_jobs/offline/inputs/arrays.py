"""Files of numpy: .npy for one input, .npz for several. Their first dimension is the rows."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from pathlib import Path

import numpy as np

from core.config import InputSpec, Signature
from core.errors import invalid
from core_jobs.offline.inputs.fitting import fitted, is_batched, only_input
from core_jobs.offline.item import Item, Request


def read_npy(path: Path, signature: Signature, input_name: str, rows: int) -> Iterator[Item]:
    """Yield the items of an array: `rows` rows each, or the whole array if it is one request."""
    spec = only_input(signature, input_name)
    try:
        array = np.load(path, mmap_mode="r", allow_pickle=False)
    except (OSError, ValueError) as error:
        raise invalid(f"'{path}' cannot be read as .npy: {error}") from None
    return _items(path, signature, {spec.name: array}, rows)


def read_npz(path: Path, signature: Signature, rows: int) -> Iterator[Item]:
    """Yield the items of arrays with the names of inputs: `rows` rows of each."""
    try:
        with np.load(path, allow_pickle=False) as file:
            arrays = dict(file)
    except (OSError, ValueError) as error:
        raise invalid(f"'{path}' cannot be read as .npz: {error}") from None
    check_names(str(path), arrays, signature)
    return _items(path, signature, arrays, rows)


def check_names(source: str, names: Iterable[str], signature: Signature) -> None:
    """Raise CoreError(INVALID) if an array has no input of the model."""
    for name in names:
        if name not in signature.inputs:
            raise invalid(
                f"'{source}' has an array '{name}'; the inputs of model '{signature.name}' are "
                f"{', '.join(signature.inputs)}"
            )


def _items(
    path: Path, signature: Signature, arrays: Mapping[str, np.ndarray], rows: int
) -> Iterator[Item]:
    size = path.stat().st_size
    total = max(1, sum(array.nbytes for array in arrays.values()))
    for source, part in parts(str(path), signature, arrays, rows):
        share = size * sum(array.nbytes for array in part.values()) // total
        yield Item(source, share, partial(request_of_arrays, part, signature))


def parts(
    source: str, signature: Signature, arrays: Mapping[str, np.ndarray], rows: int
) -> Iterator[tuple[str, dict[str, np.ndarray]]]:
    """Yield (source, arrays) of each request: `rows` rows of each array, or all if they are one request.

    Raises CoreError(INVALID) for arrays with different numbers of rows.
    """
    shapes = {name: array.shape for name, array in arrays.items()}
    firsts = first_rows(source, signature, shapes, rows)
    if firsts is None:
        yield source, dict(arrays)
        return
    for at in firsts:
        last = min(at + firsts.step, firsts.stop)
        part = {
            name: array[at:last] if signature.max_batch_size > 0 else array[at]
            for name, array in arrays.items()
        }
        yield f"{source}[{at}]" if last == at + 1 else f"{source}[{at}:{last}]", part


def first_rows(
    source: str, signature: Signature, shapes: Mapping[str, tuple[int, ...]], rows: int
) -> range | None:
    """Return the first row of each request; None if arrays of these shapes are one request together.

    Raises CoreError(INVALID) for different numbers of rows.
    """
    if all(_is_whole(shape, signature.inputs[name], signature) for name, shape in shapes.items()):
        return None
    counts = {name: shape[0] if shape else 0 for name, shape in shapes.items()}
    if len(set(counts.values())) != 1:
        shown = ", ".join(f"'{name}' {count}" for name, count in counts.items())
        raise invalid(f"the arrays in '{source}' have different numbers of rows: {shown}")
    # A model without a batch dimension takes one row at a time, without that dimension.
    step = rows if signature.max_batch_size > 0 else 1
    return range(0, next(iter(counts.values())), step)


def _is_whole(shape: tuple[int, ...], spec: InputSpec, signature: Signature) -> bool:
    """Return whether an array is one request: it has no dimension for rows."""
    return not is_batched(spec, signature) and len(shape) == len(spec.dims)


def request_of_arrays(arrays: Mapping[str, np.ndarray], signature: Signature) -> Request:
    """Return the request with these inputs. Raises CoreError(INVALID) for arrays that do not fit."""
    specs = {name: signature.inputs[name] for name in arrays}
    return Request(
        {
            name: fitted(spec, is_batched(spec, signature), np.array(arrays[name]))
            for name, spec in specs.items()
        }
    )
