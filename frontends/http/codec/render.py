"""InferenceResponse → bytes.

split ─► [render].  JSON first, then the binary outputs in the order of the response; the bytes of a
tensor are copied once, into the body.
"""

from __future__ import annotations

from typing import Any

import orjson

from core.response import InferenceResponse
from core.tensor import Buffer
from frontends.http.codec.json_tensor import write_data
from frontends.http.codec.limits import JSON_SIZE
from frontends.http.codec.parse import OutputForm
from frontends.http.message import JSON_HEADERS, Answer


def render(response: InferenceResponse, form: OutputForm) -> Answer:
    """The answer 200 with the outputs, each in the form that the request wants; raises as `write`."""
    json_size, parts = write(response, form)
    if not json_size:
        return Answer(200, JSON_HEADERS, parts[0])
    headers = {"Content-Type": "application/octet-stream", JSON_SIZE: str(json_size)}
    return Answer(200, headers, b"".join(parts))


def write(response: InferenceResponse, form: OutputForm) -> tuple[int, list[Buffer]]:
    """The body as buffers to be sent one after another: the JSON, then the binary outputs.

    Returns the size of the JSON, 0 if nothing follows it, and the buffers. Of outputs in shared
    memory there are no bytes in them. Raises CoreError(INVALID) for an FP16 or BF16 output that is
    wanted in JSON.
    """
    tail: list[Buffer] = []
    outputs = []
    for tensor in response.outputs:
        entry: dict[str, Any] = {
            "name": tensor.name,
            "datatype": tensor.dtype.name,
            "shape": tensor.shape,
        }
        if tensor.name in form.placed:
            pass
        elif form.binary(tensor.name):
            raw = tensor.raw
            size = memoryview(raw).nbytes
            entry["parameters"] = {"binary_data_size": size}
            if size:
                tail.append(raw)
        else:
            entry["data"] = orjson.Fragment(write_data(tensor))
        outputs.append(entry)
    document: dict[str, Any] = {"id": response.id} if response.id else {}
    document["model_name"] = response.model_name
    document["model_version"] = str(response.model_version)
    if response.parameters:
        document["parameters"] = response.parameters
    document["outputs"] = outputs
    text = orjson.dumps(document)
    return (len(text) if tail else 0), [text, *tail]
