"""Bodies of `generate_stream`: a JSON object with the values of the inputs."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

from core_bench.data.json_file import Step
from core_bench.data.tensors import Value
from core_bench.model.address import Address, model_path
from core_bench.model.description import ModelInfo
from core_bench.plan import Side
from core_bench.wire.http_infer import head
from core_bench.wire.request import WireRequest


def generate_requests(
    side: Side, info: ModelInfo, address: Address, steps: Sequence[Step]
) -> list[WireRequest]:
    """Return whole requests of generate_stream, one for each step."""
    path = f"{address.prefix}{model_path(side.model, side.version)}/generate_stream"
    made = []
    for step in steps:
        document = {name: _simple(value) for name, value in step.items()}
        body = orjson.dumps({**document, **(side.parameters or {})})
        headers = [("Content-Type", "application/json"), *side.headers]
        made.append(WireRequest(head("POST", path, address, headers, len(body)) + body))
    return made


def _simple(value: Value) -> Any:
    """Return a single value without a list, as clients of generate_stream write it."""
    elements = value.elements()
    return elements[0] if len(elements) == 1 else elements
