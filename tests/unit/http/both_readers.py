"""The compiled reader of v2 requests, with the reader in Python as its oracle.

The compiled reader must read like the other, or leave the request to it.
"""

import json
import struct

from core.errors import CoreError
from core.request import InferenceRequest
from frontends.http.codec.parse import parse, parse_document
from frontends.http.native import infer_request
from frontends.shared.memory import SharedMemoryRegions

MOST = 2**18
REGIONS = SharedMemoryRegions(allowed=False)
REQUEST = [name for name in dir(InferenceRequest("m", {})) if name[0] != "_" and name != "inputs"]


def described(found):
    """All that can be seen of a request and its form, to the bit."""
    request, form = found
    attributes = {
        name: getattr(request, name)
        for name in REQUEST
        if not callable(getattr(request, name)) and name != "outputs"
    }
    attributes["parameters"] = [
        (key, type(value), struct.pack("<d", value) if type(value) is float else value)
        for key, value in request.parameters.items()
    ]
    inputs = [
        (key, tensor.name, tensor.dtype, tensor.shape, bytes(tensor.raw))
        for key, tensor in request.inputs.items()
    ]
    outputs = [
        (output.name, output.class_count, output.memory, form.binary(output.name))
        for output in request.outputs
    ]
    default = None if outputs else form.binary("any")
    return attributes, inputs, outputs, default, set(form.placed)


def outcome(read, body, size, regions=REGIONS):
    """Return the result of reading: a request, or the text of the refusal."""
    try:
        found = read("m", -1, body, size, MOST, regions)
    except CoreError as error:
        return error.kind, error.message
    return None if found is None else described(found)


def agreed(head, tail=b"", regions=REGIONS):
    """The outcome for JSON and what follows it; that of the compiled reader is the same, or None."""
    body = head + tail
    expected = outcome(parse_document, body, len(head), regions)
    found = outcome(infer_request.read, body, len(head), regions)
    headers = {"Inference-Header-Content-Length": str(len(head))}

    def whole(model, version, body, size, most, regions):
        return parse(model, version, None, headers, body, most, regions)

    assert found is None or found == expected, (found, expected)
    if 0 < len(head) <= MOST:
        found_whole = outcome(whole, body, len(head), regions)
        assert found_whole == expected, (found_whole, expected)
    return found


def read(head, tail=b""):
    """The request, which the compiled reader takes."""
    body = head if isinstance(head, bytes) else json.dumps(head).encode()
    assert agreed(body, tail) is not None, body
    return infer_request.read("m", -1, body + tail, len(body), MOST, REGIONS)


def left(head, tail=b""):
    """Return whether the compiled reader leaves it to the other one."""
    body = head if isinstance(head, bytes) else json.dumps(head).encode()
    return agreed(body, tail) is None


def numbers(dtype, text, count=1):
    """A request with one input of these elements."""
    head = b'{"inputs":[{"name":"x","datatype":"%s","shape":[%d],"data":[%s]}]}'
    return head % (dtype.name.encode(), count, text)
