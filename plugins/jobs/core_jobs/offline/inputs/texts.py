"""Texts: each line, or some lines together, are a request with one input of BYTES."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from core import dtypes
from core.config import InputSpec, Signature
from core.errors import invalid
from core_jobs.offline.inputs.fitting import CHOSEN_BY, fitted, is_batched, only_input
from core_jobs.offline.item import Request


def text_input(
    source: str, signature: Signature, name: str, chosen_by: str = CHOSEN_BY
) -> InputSpec:
    """Return the input of `only_input` that a file with texts feeds.

    Raises CoreError(INVALID) also if that takes no texts.
    """
    spec = only_input(signature, name, chosen_by)
    if spec.dtype is not dtypes.BYTES:
        raise invalid(f"'{source}' has texts, but input '{spec.name}' is {spec.dtype.name}")
    return spec


def groups(lines: Iterable[bytes], rows: int) -> Iterator[tuple[int, list[bytes]]]:
    """Yield `rows` lines at a time, with the number of the first one, from 1 on."""
    found: list[bytes] = []
    first = 1
    for number, line in enumerate(lines, 1):
        found.append(line)
        if len(found) == rows:
            yield first, found
            found, first = [], number + 1
    if found:
        yield first, found


def request_of_lines(lines: Sequence[bytes], spec: InputSpec, signature: Signature) -> Request:
    """Return the request with an element for each line. Raises CoreError(INVALID) if they do not fit."""
    array = np.array([line.rstrip(b"\r\n") for line in lines], dtype=object)
    dims = [1 if dim == -1 else dim for dim in spec.dims]
    batched = is_batched(spec, signature)
    if batched and set(dims) <= {1}:
        array = array.reshape((len(lines), *dims))
    return Request({spec.name: fitted(spec, batched, array)})
