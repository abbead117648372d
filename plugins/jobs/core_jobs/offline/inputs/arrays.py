"""Files of numpy: .npy for one input, .npz for several. Their first dimension is the rows."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
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
    for name in arrays:
        if name not in signature.inputs:
            raise invalid(
                f"'{path}' has an array '{name}'; the inputs of model '{signature.name}' are "
                f"{', '.join(signature.inputs)}"
            )
    return _items(path, signature, arrays, rows)


def _items(
    path: Path, signature: Signature, arrays: Mapping[str, np.ndarray], rows: int
) -> Iterator[Item]:
    specs = {name: signature.inputs[name] for name in arrays}
    size = path.stat().st_size
    if all(_is_whole(arrays[name], spec, signature) for name, spec in specs.items()):
        yield Item(str(path), size, partial(_request, arrays, specs, signature))
        return
    counts = {name: len(array) if array.ndim else 0 for name, array in arrays.items()}
    if len(set(counts.values())) != 1:
        shown = ", ".join(f"'{name}' {count}" for name, count in counts.items())
        raise invalid(f"the arrays in '{path}' have different numbers of rows: {shown}")
    count = next(iter(counts.values()))
    # A model without a batch dimension takes one row at a time, without that dimension.
    step = rows if signature.max_batch_size > 0 else 1
    for at in range(0, count, step):
        last = min(at + step, count)
        part = {
            name: array[at:last] if signature.max_batch_size > 0 else array[at]
            for name, array in arrays.items()
        }
        source = f"{path}[{at}]" if last == at + 1 else f"{path}[{at}:{last}]"
        share = size * (last - at) // max(count, 1)
        yield Item(source, share, partial(_request, part, specs, signature))


def _is_whole(array: np.ndarray, spec: InputSpec, signature: Signature) -> bool:
    """Return whether an array is one request: it has no dimension for rows."""
    return not is_batched(spec, signature) and array.ndim == len(spec.dims)


def _request(
    arrays: Mapping[str, np.ndarray], specs: Mapping[str, InputSpec], signature: Signature
) -> Request:
    return Request(
        {
            name: fitted(spec, is_batched(spec, signature), np.array(arrays[name]))
            for name, spec in specs.items()
        }
    )
