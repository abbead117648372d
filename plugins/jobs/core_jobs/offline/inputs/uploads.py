"""Uploaded files → parts, one for each request. They mean what files of `core run --input` mean.

bytes of a file ─► [split] ─► Part: bytes, Origin ─► store ─► [request_in] ─► Request
"""

from __future__ import annotations

import io
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import PurePath

import numpy as np

from core.config import Signature
from core.errors import invalid
from core.tensor import Buffer
from core_jobs.job import Origin
from core_jobs.offline.inputs.array_bytes import (
    Head,
    array_in,
    arrays_in,
    bytes_of_array,
    bytes_of_arrays,
    head_in,
    heads_in,
)
from core_jobs.offline.inputs.arrays import (
    check_names,
    first_rows,
    parts,
    request_of_arrays,
)
from core_jobs.offline.inputs.files import LINES
from core_jobs.offline.inputs.fitting import is_batched, only_input, tensor_of_file
from core_jobs.offline.inputs.json_lines import read_line
from core_jobs.offline.inputs.texts import request_of_lines, text_input
from core_jobs.offline.item import Request

NPY, NPZ, TEXT, JSON_LINES, AS_IT_IS = ".npy", ".npz", ".txt", ".jsonl", ""
_PIECE = 1 << 20  # bytes in which line ends are counted at a time
_BLANKS = b" \t\r\v\f"  # as those of bytes.strip, without the end of a line
_CHOSEN_BY = "the field 'input_name' of the form"


@dataclass(frozen=True, slots=True)
class Upload:
    """A file that a client has sent.

    input   that it feeds if it names none; "" for the only one
    """

    name: str
    data: memoryview
    input: str = ""

    @property
    def form(self) -> str:
        """How its bytes are read: NPY, NPZ, TEXT, JSON_LINES or AS_IT_IS."""
        suffix = PurePath(self.name).suffix.lower()
        if suffix in LINES:
            return JSON_LINES
        return suffix if suffix in (NPY, NPZ, TEXT) else AS_IT_IS

    @property
    def names_inputs(self) -> bool:
        """Whether its content says which inputs it feeds."""
        return self.form in (JSON_LINES, NPZ)


def split(file: Upload, signature: Signature, rows: int) -> Iterator[tuple[Buffer, Origin]]:
    """Yield the bytes and the origin of each request in a file. Thread-safe.

    rows   of an array, or lines of a text, in one request
    The bytes of rows are small files of their own; all others are views of the file.
    Raises CoreError(INVALID) for a file that cannot be taken apart, and for one that names no input if the
    model has several.
    """
    if file.form == JSON_LINES:
        for number, line in _lines(file.data):
            if line.tobytes().strip():
                yield line, _origin(file, f":{number}")
    elif file.form == TEXT:
        yield from _texts(file, signature, rows)
    elif file.form == AS_IT_IS:
        only_input(signature, file.input, _CHOSEN_BY)
        yield file.data, _origin(file)
    else:
        yield from _arrays(file, signature, rows)


def most_requests(file: Upload, signature: Signature, rows: int) -> int:
    """Return how many requests `split` makes of a file, for JSON lines an upper bound. Thread-safe.

    Raises CoreError(INVALID) for arrays that cannot be taken apart.
    """
    if file.form == AS_IT_IS:
        only_input(signature, file.input, _CHOSEN_BY)
        return 1
    if file.form == JSON_LINES:
        return count_filled_lines(file.data)
    if file.form == TEXT:
        return -(-count_lines(file.data) // _lines_together(file, signature, rows))
    heads = _heads(file, signature)
    firsts = first_rows(file.name, signature, {name: heads[name].shape for name in heads}, rows)
    if firsts is None:
        return 1
    if firsts.stop > 1 and not any(each.element_bytes for each in heads.values()):
        raise invalid(f"the arrays in '{file.name}' have {firsts.stop} rows without any element")
    # Not len: a head may promise more than an index can be.
    return -(-firsts.stop // firsts.step)


def _heads(file: Upload, signature: Signature) -> dict[str, Head]:
    if file.form == NPY:
        name = only_input(signature, file.input, _CHOSEN_BY).name
        return {name: head_in(file.data, file.data.nbytes, file.name)}
    heads = heads_in(file.data, file.name)
    check_names(file.name, heads, signature)
    return heads


def count_lines(data: memoryview) -> int:
    """Return the number of lines, also of empty ones. Thread-safe."""
    ends = sum(bytes(data[at : at + _PIECE]).count(b"\n") for at in range(0, data.nbytes, _PIECE))
    return ends + (data.nbytes > 0 and data[-1] != ord("\n"))


def count_filled_lines(data: memoryview) -> int:
    """Return the number of lines that do not only have blanks. Thread-safe."""
    found, before = 0, b"\n"
    for at in range(0, data.nbytes, _PIECE):
        piece = before + bytes(data[at : at + _PIECE]).translate(None, _BLANKS)
        is_end = np.frombuffer(piece, np.uint8) == ord("\n")
        found += int(np.count_nonzero(is_end[:-1] & ~is_end[1:]))
        before = piece[-1:]
    return found


def _lines(data: memoryview) -> Iterator[tuple[int, memoryview]]:
    """Yield the number and the bytes of each line, with its end."""
    at = 0
    for number, line in enumerate(io.BytesIO(data), 1):
        yield number, data[at : at + len(line)]
        at += len(line)


def _lines_together(file: Upload, signature: Signature, rows: int) -> int:
    """Return how many lines of a text are one request: `rows`, or 1 for an input without a batch."""
    spec = text_input(file.name, signature, file.input, _CHOSEN_BY)
    return rows if is_batched(spec, signature) else 1


def _texts(file: Upload, signature: Signature, rows: int) -> Iterator[tuple[Buffer, Origin]]:
    step = _lines_together(file, signature, rows)
    begin = end = 0
    first = 1
    for number, line in _lines(file.data):
        end += line.nbytes
        if number % step == 0:
            yield file.data[begin:end], _origin(file, f":{first}")
            begin, first = end, number + 1
    if end > begin:
        yield file.data[begin:end], _origin(file, f":{first}")


def _arrays(file: Upload, signature: Signature, rows: int) -> Iterator[tuple[Buffer, Origin]]:
    if file.form == NPZ:
        arrays = arrays_in(file.data, file.name)
        check_names(file.name, arrays, signature)
    else:
        name = only_input(signature, file.input, _CHOSEN_BY).name
        arrays = {name: array_in(file.data, file.name)}
    for source, part in parts(file.name, signature, arrays, rows):
        place = source.removeprefix(file.name)
        if file.form == NPZ:
            yield bytes_of_arrays(part), _origin(file, place)
        else:
            yield bytes_of_array(next(iter(part.values()))), _origin(file, place)


def _origin(file: Upload, place: str = "") -> Origin:
    input = "" if file.names_inputs else file.input
    return Origin(file.name, place, file.form, input)


def request_in(data: bytes, origin: Origin, signature: Signature) -> Request:
    """Return the request in a part of a file. Raises CoreError(INVALID) if it does not fit. Thread-safe."""
    try:
        return _request_in(data, origin, signature)
    except (ValueError, TypeError, OverflowError, SystemError, RecursionError) as error:
        # One of many files must not end its job.
        raise invalid(f"'{origin.source}' cannot become a request: {error}") from error


def _request_in(data: bytes, origin: Origin, signature: Signature) -> Request:
    if origin.form == JSON_LINES:
        return read_line(data, signature)
    if origin.form == NPZ:
        arrays = arrays_in(data, origin.source)
        check_names(origin.source, arrays, signature)
        return request_of_arrays(arrays, signature)
    if origin.form == TEXT:
        spec = text_input(origin.source, signature, origin.input, _CHOSEN_BY)
        return request_of_lines(list(io.BytesIO(data)), spec, signature)
    spec = only_input(signature, origin.input, _CHOSEN_BY)
    if origin.form == NPY:
        return request_of_arrays({spec.name: array_in(data, origin.source)}, signature)
    return Request({spec.name: tensor_of_file(spec, is_batched(spec, signature), data)})
