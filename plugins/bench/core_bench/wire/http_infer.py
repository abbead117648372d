"""Bodies of `infer` over HTTP: JSON, with binary tensors behind it or shared memory beside it."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

from core.errors import invalid
from core_bench.data.json_file import Step
from core_bench.model.address import Address, model_path
from core_bench.model.description import ModelInfo
from core_bench.plan import Side
from core_bench.wire.regions import Regions
from core_bench.wire.request import WireRequest

_ID, _FLAG = b" " * 20, b"false"


def infer_requests(
    side: Side, info: ModelInfo, address: Address, steps: Sequence[Step], regions: Regions | None
) -> list[WireRequest]:
    """Return whole requests, one for each step."""
    path = f"{address.prefix}{model_path(side.model, side.version)}/infer"
    return [
        _request(side, info, path, address, step, _memory(regions, number))
        for number, step in enumerate(steps)
    ]


Memory = tuple[Regions, int] | None


def _memory(regions: Regions | None, number: int) -> Memory:
    return None if regions is None else (regions, number)


def _request(
    side: Side, info: ModelInfo, path: str, address: Address, step: Step, memory: Memory
) -> WireRequest:
    body = _document(side, info, step, memory)
    binary = b""
    headers = [("Content-Type", "application/json")]
    if not side.json_input and memory is None:
        binary = b"".join(value.raw for value in step.values())
        headers = [
            ("Content-Type", "application/octet-stream"),
            ("Inference-Header-Content-Length", str(len(body.wire))),
        ]
    whole = WireRequest(body.wire + binary, *body[1:])
    return whole.moved(head("POST", path, address, [*headers, *side.headers], len(whole.wire)))


def head(
    method: str, path: str, address: Address, headers: Sequence[tuple[str, str]], size: int
) -> bytes:
    """Return the head of a request. Raises CoreError for a path with blanks or line ends."""
    if any(each <= " " for each in path):
        raise invalid(f"the path '{path}' has blanks")
    lines = [f"{method} {path} HTTP/1.1", f"Host: {address.authority}"]
    lines += [f"{name}: {value}" for name, value in headers]
    lines += [f"Content-Length: {size}", "", ""]
    return "\r\n".join(lines).encode("latin-1", "replace")


def _document(side: Side, info: ModelInfo, step: Step, memory: Memory) -> WireRequest:
    inputs = [_input(side, name, step, memory) for name in step]
    document: dict[str, Any] = {"inputs": inputs}
    parameters = dict(side.parameters or {})
    if memory is not None:
        regions, number = memory
        document["outputs"] = [
            {"name": name, "parameters": _region(regions.output_region, where)}
            for name, where in regions.outputs[number].items()
        ]
    elif not side.json_output:
        parameters["binary_data_output"] = True
    if not info.sequences:
        if parameters:
            document["parameters"] = parameters
        return WireRequest(orjson.dumps(document))
    # The parameters come last, so that the places of their values are known.
    text = orjson.dumps(document)[:-1] + b',"parameters":{"sequence_id":'
    id_at = len(text)
    text += _ID + b',"sequence_start":'
    start_at = len(text)
    text += _FLAG + b',"sequence_end":'
    end_at = len(text)
    text += _FLAG
    if parameters:
        text += b"," + orjson.dumps(parameters)[1:-1]
    return WireRequest(text + b"}}", id_at, start_at, end_at)


def _input(side: Side, name: str, step: Step, memory: Memory) -> dict[str, Any]:
    value = step[name]
    made: dict[str, Any] = {"name": name, "shape": value.shape, "datatype": value.datatype}
    if memory is not None:
        regions, number = memory
        made["parameters"] = _region(regions.input_region, regions.inputs[number][name])
    elif side.json_input:
        if value.datatype in ("FP16", "BF16"):
            raise invalid(
                f"JSON has no form of {value.datatype}, which input '{name}' is; use binary"
            )
        made["data"] = value.elements()
    else:
        made["parameters"] = {"binary_data_size": len(value.raw)}
    return made


def _region(name: str, where: tuple[int, int]) -> dict[str, Any]:
    offset, size = where
    return {
        "shared_memory_region": name,
        "shared_memory_offset": offset,
        "shared_memory_byte_size": size,
    }
