"""The protocol in small words: tensors in their wire forms, and what an answer must be."""

import json
import struct
import time

import numpy as np
import tritonclient.grpc
import tritonclient.http
from tritonclient.utils import np_to_triton_dtype


def tensor(name, data, shape=None, datatype="FP32", **parameters):
    """An input of a JSON request."""
    entry = {
        "name": name,
        "datatype": datatype,
        "shape": [len(data)] if shape is None else shape,
        "data": data,
    }
    if parameters:
        entry["parameters"] = parameters
    return entry


def binary_tensor(name, size, shape, datatype="FP32"):
    """Return an input of a JSON request whose bytes follow the JSON."""
    return {
        "name": name,
        "datatype": datatype,
        "shape": shape,
        "parameters": {"binary_data_size": size},
    }


def infer_binary(server, model, request, data, length=None, headers=None, **kwargs):
    """Send a request of the binary tensor extension."""
    head = request if isinstance(request, bytes) else json.dumps(request).encode()
    sent = {"Inference-Header-Content-Length": str(len(head) if length is None else length)}
    sent.update(headers or {})
    return server.infer(model, head + data, headers=sent, **kwargs)


def split_binary(response):
    """(JSON part, the bytes after it) of an answer.

    The header may be left out when no byte follows the JSON.
    """
    length = int(response.headers.get("Inference-Header-Content-Length", len(response.body)))
    return json.loads(response.body[:length]), response.body[length:]


def outputs_of(response):
    """{name: output} of a JSON answer."""
    assert response.status == 200, response.body
    return {output["name"]: output for output in response.json["outputs"]}


def data_of(response, name="OUTPUT0"):
    return outputs_of(response)[name]["data"]


def refused(response, *statuses):
    """The answer is an error in the form of the protocol; gives its text.

    Without statuses any client or server error is right: the protocol fixes
    the form of the body, and which of the two a malformed request gets is
    not something that a client can rely on.
    """
    if statuses:
        assert response.status in statuses, (response.status, response.body)
    else:
        assert 400 <= response.status < 600, (response.status, response.body)
    text = response.json["error"]
    assert isinstance(text, str) and text
    assert set(response.json) == {"error"}
    return text


def http_input(name, array, datatype=None, binary=True):
    array = np.asarray(array)
    entry = tritonclient.http.InferInput(
        name, list(array.shape), datatype or np_to_triton_dtype(array.dtype)
    )
    entry.set_data_from_numpy(array, binary_data=binary)
    return entry


def grpc_input(name, array, datatype=None):
    array = np.asarray(array)
    entry = tritonclient.grpc.InferInput(
        name, list(array.shape), datatype or np_to_triton_dtype(array.dtype)
    )
    entry.set_data_from_numpy(array)
    return entry


def http_output(name, **kwargs):
    return tritonclient.http.InferRequestedOutput(name, **kwargs)


def grpc_output(name, **kwargs):
    return tritonclient.grpc.InferRequestedOutput(name, **kwargs)


def texts(*items):
    """A one-dimensional BYTES array."""
    return np.array(
        [item.encode() if isinstance(item, str) else item for item in items], dtype=np.object_
    )


def pack_bytes(*items):
    """The wire form of BYTES elements."""
    return b"".join(struct.pack("<I", len(item)) + item for item in items)


def wait_until(condition, timeout=20, pause=0.05):
    """Whether condition() became true in time; gives its last value."""
    deadline = time.monotonic() + timeout
    while True:
        value = condition()
        if value or time.monotonic() > deadline:
            return value
        time.sleep(pause)


SAMPLES = {
    "BOOL": np.array([[True, False, True]]),
    "UINT8": np.array([[0, 1, 255]], np.uint8),
    "UINT16": np.array([[0, 1, 65535]], np.uint16),
    "UINT32": np.array([[0, 1, 2**32 - 1]], np.uint32),
    "UINT64": np.array([[0, 1, 2**64 - 1]], np.uint64),
    "INT8": np.array([[-128, 0, 127]], np.int8),
    "INT16": np.array([[-32768, 0, 32767]], np.int16),
    "INT32": np.array([[-(2**31), 0, 2**31 - 1]], np.int32),
    "INT64": np.array([[-(2**63), 0, 2**63 - 1]], np.int64),
    "FP16": np.array([[-1.5, 0.0, 65504.0]], np.float16),
    "FP32": np.array([[-1.5, 0.0, 3.4e38]], np.float32),
    "FP64": np.array([[-1.5, 0.0, 1.7e308]], np.float64),
    "BYTES": np.array([[b"plain", b"", "\u00e9\u2603 \U0001f600".encode()]], np.object_),
}
