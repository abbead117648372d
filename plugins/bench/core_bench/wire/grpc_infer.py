"""Messages of ModelInfer and ModelStreamInfer, with the five bytes that gRPC puts before them."""

from __future__ import annotations

import struct
from collections.abc import Sequence
from typing import Any

from core_bench.data.json_file import Step
from core_bench.model.description import ModelInfo
from core_bench.plan import Side
from core_bench.wire.regions import Regions
from core_bench.wire.request import WireRequest
from frontends.grpc.protocol import messages

HEAD = 5


def grpc_requests(
    side: Side, info: ModelInfo, steps: Sequence[Step], regions: Regions | None
) -> list[WireRequest]:
    """Return one message for each step."""
    made = []
    for number, step in enumerate(steps):
        message = _message(side, info, step)
        if regions is None:
            message.raw_input_contents.extend(value.raw for value in step.values())
        else:
            _use_regions(message, regions, number)
        request = WireRequest(message.SerializeToString())
        if info.sequences:
            request = _with_sequence(request)
        made.append(request.moved(b"\0" + struct.pack(">I", len(request.wire))))
    return made


def _message(side: Side, info: ModelInfo, step: Step) -> messages.ModelInferRequest:
    message = messages.ModelInferRequest(model_name=side.model, model_version=side.version)
    for name, value in step.items():
        message.inputs.add(name=name, datatype=value.datatype, shape=value.shape)
    for key, given in (side.parameters or {}).items():
        if isinstance(given, bool):
            message.parameters[key].bool_param = given
        elif isinstance(given, int):
            message.parameters[key].int64_param = given
        elif isinstance(given, float):
            message.parameters[key].double_param = given
        else:
            message.parameters[key].string_param = given
    if side.streaming and info.decoupled:
        # Else nothing says which response of a decoupled model is its last one.
        message.parameters["triton_enable_empty_final_response"].bool_param = True
    return message


def _use_regions(message: messages.ModelInferRequest, regions: Regions, number: int) -> None:
    places: list[tuple[Any, str, tuple[int, int]]] = [
        (each, regions.input_region, regions.inputs[number][each.name]) for each in message.inputs
    ]
    for name, where in regions.outputs[number].items():
        places.append((message.outputs.add(name=name), regions.output_region, where))
    for tensor, region, (offset, size) in places:
        tensor.parameters["shared_memory_region"].string_param = region
        tensor.parameters["shared_memory_offset"].int64_param = offset
        tensor.parameters["shared_memory_byte_size"].int64_param = size


def _with_sequence(request: WireRequest) -> WireRequest:
    """Append the parameters of a sequence, whose values are at known places."""
    wire, id_at = _entry(request.wire, b"sequence_id", b"\x10", bytes([0x80] * 9 + [0]))
    wire, start_at = _entry(wire, b"sequence_start", b"\x08", b"\0")
    wire, end_at = _entry(wire, b"sequence_end", b"\x08", b"\0")
    return WireRequest(wire, id_at, start_at, end_at)


def _entry(wire: bytes, key: bytes, tag: bytes, value: bytes) -> tuple[bytes, int]:
    """Append an entry of the map `parameters`; return the place of its value too."""
    parameter = tag + value
    entry = b"\x0a" + bytes([len(key)]) + key + b"\x12" + bytes([len(parameter)]) + parameter
    made = wire + b"\x22" + bytes([len(entry)]) + entry
    return made, len(made) - len(value)
