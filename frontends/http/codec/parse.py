"""Bytes and headers → InferenceRequest.

[parse] ─► admit.  The compiled reader reads valid requests. The rest are read here, with the text of
every error. This module does not compare inputs and outputs with the model: admit does.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from core import dtypes
from core.config import Signature
from core.errors import CoreError, invalid
from core.request import InferenceRequest, RequestedOutput, repeated_input
from core.tensor import Buffer, Tensor
from frontends.http.codec import raw
from frontends.http.codec.content_types import BASE64, KEY, read_typed
from frontends.http.codec.data_frame import FRAME, fit_frame
from frontends.http.codec.json_tensor import LARGEST
from frontends.http.codec.json_text import INFERENCE, read_json
from frontends.http.codec.limits import json_size, too_large
from frontends.http.codec.parameters import natural, read_parameters, truth, typed
from frontends.http.native.infer_request import OutputForm as OutputForm
from frontends.http.native.infer_request import read
from frontends.shared.memory import CudaPlace, SharedMemoryRegions
from frontends.shared.v2 import (
    MOST_DIMENSIONS,
    check_entries,
    labelled,
    too_many_dimensions,
)

_SOURCES = ("data", "binary_data_size", "shared_memory_region")


def parse(
    model: str,
    version: int,
    signature: Signature,
    headers: Mapping[str, str],
    body: Buffer,
    most_bytes: int,
    regions: SharedMemoryRegions,
) -> tuple[InferenceRequest, OutputForm]:
    """Return the request to a model and the requested form of its response.

    model        from the path
    version      from the path, -1 for the newest
    signature    of the model; only used for a request without JSON, and for a data frame
    headers      ignore the case of their keys
    body         not compressed; large binary tensors view it and keep it alive
    most_bytes   --http-max-input-size: limit of the JSON, of each tensor in JSON, and of a raw input
    regions      shared memory that inputs and outputs may be in
    Raises CoreError(INVALID) for a malformed request, CoreError(NOT_FOUND) for an unknown region.
    """
    body_size = len(body) if type(body) is bytes else memoryview(body).nbytes
    size = json_size(headers, body_size)
    if size == 0:
        view = memoryview(body).toreadonly()
        return raw.parse(model, version, signature, view, most_bytes), OutputForm(default=True)
    if size > most_bytes:
        raise too_large(size, most_bytes)
    found = read(model, version, body, size, most_bytes, regions)
    if found is None:
        found = parse_document(model, version, body, size, most_bytes, regions)
        if found[0].parameters.get(KEY) == FRAME:
            fit_frame(found[0], signature)
    return found


def parse_document(
    model: str,
    version: int,
    body: Buffer,
    size: int,
    most_bytes: int,
    regions: SharedMemoryRegions,
) -> tuple[InferenceRequest, OutputForm]:
    """Parse a body that begins with `size` bytes of JSON, in plain Python.

    Reference for the compiled reader. Raises what `parse` raises.
    """
    view = memoryview(body).toreadonly()
    document = read_json(view[:size], INFERENCE)
    if type(document) is not dict:
        raise _missing("inputs")
    id = document.get("id", "")
    if type(id) is not str:
        raise typed("id", "string")
    form = OutputForm()
    request = InferenceRequest(model, {}, model_version=version, id=id)
    if "parameters" in document:
        form.default = read_parameters(document["parameters"], request)
    _read_inputs(document, request, view[size:], most_bytes, regions)
    if "outputs" in document:
        request.outputs = _read_outputs(document["outputs"], regions, form)
        request.shared = request.shared or bool(form.placed)
    return request, form


def _missing(member: str, where: str = "") -> CoreError:
    return invalid(
        f"Unable to parse '{member}': attempt to access non-existing object member '{member}'{where}"
    )


# Inputs -------------------------------------------------------------------------


def _read_inputs(
    document: dict[str, Any],
    request: InferenceRequest,
    tail: memoryview,
    most_bytes: int,
    regions: SharedMemoryRegions,
) -> None:
    if "inputs" not in document:
        raise _missing("inputs")
    entries = document["inputs"]
    if type(entries) is not list:
        raise typed("inputs", "array")
    check_entries("inputs", entries)
    at = 0
    for entry in entries:
        if type(entry) is not dict:
            raise invalid("Unable to parse 'inputs': an element of 'inputs' is not an object")
        options = entry.get("parameters")
        if type(options) is not dict:
            options = {}
        source = _source(entry, options)
        name, dtype, shape = _describe(entry)
        if name in request.inputs:
            raise labelled(request.id, repeated_input(name))
        if source == "data":
            kind = options.get(KEY)
            tensor = read_typed(name, dtype, shape, entry["data"], kind, most_bytes)
        elif source == "binary_data_size":
            size = natural("binary_data_size", options["binary_data_size"], f" in input '{name}'")
            if size > len(tail) - at:
                raise invalid(
                    f"unexpected size for input '{name}', expecting {size - len(tail) + at} additional "
                    f"bytes for model '{request.model_name}'"
                )
            tensor = Tensor(name, dtype, shape, raw=tail[at : at + size])
            at += size
        else:
            place = _place(options, f" in input '{name}'")
            found = regions.read(*place, dtype)
            if isinstance(found, CudaPlace):
                tensor = found.tensor(name, dtype, shape, request.model_name)
            else:
                tensor = Tensor(name, dtype, shape, raw=found)
            request.shared = True
        request.inputs[name] = tensor
    if at != len(tail):
        raise invalid(f"unexpected additional input data for model '{request.model_name}'")


def _source(entry: dict[str, Any], options: dict[str, Any]) -> str:
    """Return the key in _SOURCES that the input has. Raises CoreError(INVALID) unless it has exactly one."""
    found = [key for key in _SOURCES if key in (entry if key == "data" else options)]
    if len(found) != 1:
        was = "set " + " ".join(f"'{key}'" for key in found) if found else "no field is set"
        raise invalid(
            "Input must set only one of the following fields: 'data', 'binary_data_size' in "
            f"'parameters', 'shared_memory_region' in 'parameters'. But {was}"
        )
    return found[0]


def _describe(entry: dict[str, Any]) -> tuple[str, dtypes.DataType, tuple[int, ...]]:
    name = _text(entry, "name")
    where = f" in input '{name}'"
    datatype = _text(entry, "datatype", where)
    if (dtype := dtypes.BY_NAME.get(datatype)) is None:
        raise invalid(f"invalid datatype for input {name}")
    if "shape" not in entry:
        raise _missing("shape", where)
    shape = entry["shape"]
    if type(shape) is not list:
        raise typed("shape", "array", where)
    if len(shape) > MOST_DIMENSIONS:
        raise invalid(too_many_dimensions(name, shape))
    for size in shape:
        if type(size) is not int or not 0 <= size <= LARGEST:
            raise typed("shape", "unsigned-integer", where)
    return name, dtype, tuple(shape)


def _text(entry: dict[str, Any], member: str, where: str = "") -> str:
    if member not in entry:
        raise _missing(member, where)
    value = entry[member]
    if type(value) is not str:
        raise typed(member, "string", where)
    return value


def _place(options: dict[str, Any], where: str) -> tuple[str, int, int]:
    """Return (region, offset, size in bytes) in the parameters of an input or output.

    An absent number is 0. Raises CoreError(INVALID) for a value of the wrong type.
    """
    region = options["shared_memory_region"]
    if type(region) is not str:
        raise typed("shared_memory_region", "string", where)
    offset, byte_size = (
        natural(key, options[key], where) if key in options else 0
        for key in ("shared_memory_offset", "shared_memory_byte_size")
    )
    return region, offset, byte_size


# Outputs ------------------------------------------------------------------------


def _read_outputs(
    entries: Any, regions: SharedMemoryRegions, form: OutputForm
) -> tuple[RequestedOutput, ...]:
    """Return the requested outputs, and write their forms into `form`. The first one of a name counts.

    Raises CoreError: INVALID for malformed entries, NOT_FOUND for an unknown region of shared memory.
    """
    if type(entries) is not list:
        raise typed("outputs", "array")
    check_entries("outputs", entries)
    wanted: dict[str, RequestedOutput] = {}
    listed: dict[str, bool] = {}
    placed: set[str] = set()
    encoded: set[str] = set()
    for entry in entries:
        if type(entry) is not dict:
            raise _missing("name", " in an element of 'outputs'")
        name = _text(entry, "name", " in an element of 'outputs'")
        options = entry.get("parameters")
        if type(options) is not dict:
            options = {}
        where = f" in output '{name}'"
        binary = "binary_data" in options and truth("binary_data", options["binary_data"], where)
        classes = 0
        if "classification" in options:
            classes = natural("classification", options["classification"], where)
        memory = None
        if "shared_memory_region" in options:
            for other, is_set in (("classification", classes), ("binary_data", binary)):
                if is_set:
                    raise invalid(f"Output can't set both 'shared_memory_region' and '{other}'")
            memory = regions.view(*_place(options, where))
        if name not in wanted:
            wanted[name] = RequestedOutput(name, classes, memory)
            listed[name] = binary
            if memory is not None:
                placed.add(name)
            elif options.get(KEY) == BASE64 and not binary and not classes:
                encoded.add(name)
    form.listed, form.placed, form.encoded = listed, placed, encoded or None
    return tuple(wanted.values())
