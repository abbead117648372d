"""Exchange: the bytes of requests, and the check of their responses.

Sample ─► [Exchange] ─► load generators.  Every server gets the same bytes, and must return the right response
once before it is measured.
"""

from __future__ import annotations

import http.client
import json
import struct
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import grpc
import numpy as np

from benchmarks.models.sample import Answer, Sample
from frontends.grpc.protocol.messages import ModelInferRequest, ModelInferResponse

JSON_SIZE = "Inference-Header-Content-Length"
GRPC_PATH = "/inference.GRPCInferenceService/ModelInfer"
PATIENCE_S = 60.0


class Wrong(Exception):
    """Error for a wrong or missing response of a server."""


@dataclass(frozen=True)
class Request:
    """One request on the wire; for gRPC the message without its frame."""

    path: str
    headers: Mapping[str, str]
    body: bytes


@dataclass(frozen=True)
class Exchange:
    """The requests that a load generator repeats.

    form       "http-json", "http-binary" or "grpc"
    models     models of the requests, in turn
    requests   sent in turn: one for each model, or one for each of several samples
    samples    content of each request, with the right response
    """

    form: str
    models: Sequence[str]
    requests: Sequence[Request]
    samples: Sequence[Sample]

    def check(self, http_port: int, grpc_port: int) -> list[int]:
        """Send each request once; return the size of each response's body in bytes.

        Raises Wrong for a wrong response.
        """
        sizes = []
        for request, sample in zip(self.requests, self.samples, strict=True):
            if self.form == "grpc":
                answer = _call(grpc_port, request)
                found = read_grpc(answer)
            else:
                answer, json_size = _post(http_port, request)
                found = read_http(answer, json_size)
            if difference := sample.difference(found):
                raise Wrong(f"{request.path}: {difference}")
            sizes.append(len(answer))
        return sizes


def exchange(form: str, models: Sequence[str], *samples: Sample) -> Exchange:
    """Return an exchange with one sample for several models, or several samples for one model, in turn."""
    make = {"http-json": http_json, "http-binary": http_binary, "grpc": grpc_message}[form]
    asked = [(model, sample) for model in models for sample in samples]
    requests = [make(model, sample) for model, sample in asked]
    return Exchange(form, models, requests, [sample for _, sample in asked])


def _entry(name: str, array: np.ndarray[Any, Any], **others: object) -> dict[str, object]:
    return {"name": name, "datatype": "FP32", "shape": list(array.shape), **others}


def _id(sample: Sample) -> dict[str, str]:
    return {"id": sample.id} if sample.id else {}


def http_json(model: str, sample: Sample) -> Request:
    inputs = [_entry(n, a, data=a.ravel().tolist()) for n, a in sample.inputs.items()]
    body = json.dumps({**_id(sample), "inputs": inputs}, separators=(",", ":")).encode()
    return Request(f"/v2/models/{model}/infer", {"Content-Type": "application/json"}, body)


def http_binary(model: str, sample: Sample) -> Request:
    """Return a request with inputs and outputs in the binary form, like clients of Triton."""
    document = {
        **_id(sample),
        "parameters": {"binary_data_output": True},
        "inputs": [
            _entry(name, array, parameters={"binary_data_size": array.nbytes})
            for name, array in sample.inputs.items()
        ],
    }
    head = json.dumps(document, separators=(",", ":")).encode()
    headers = {"Content-Type": "application/octet-stream", JSON_SIZE: str(len(head))}
    body = b"".join([head, *(array.tobytes() for array in sample.inputs.values())])
    return Request(f"/v2/models/{model}/infer", headers, body)


def grpc_message(model: str, sample: Sample) -> Request:
    message = ModelInferRequest(model_name=model, id=sample.id)
    for name, array in sample.inputs.items():
        message.inputs.add(name=name, datatype="FP32", shape=array.shape)
        message.raw_input_contents.append(array.tobytes())
    return Request(GRPC_PATH, {}, message.SerializeToString())


def grpc_frame(body: bytes) -> bytes:
    """Return a message in gRPC's frame: the flag "not compressed", the length, the message."""
    return struct.pack(">BI", 0, len(body)) + body


# answers ------------------------------------------------------------------------------


def _post(port: int, request: Request) -> tuple[bytes, int | None]:
    """Return the body of the response, and the size of its JSON part; None if it is only JSON."""
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=PATIENCE_S)
    try:
        connection.request("POST", request.path, request.body, dict(request.headers))
        answer = connection.getresponse()
        body = answer.read()
        size = answer.getheader(JSON_SIZE)
    except (OSError, http.client.HTTPException) as error:
        raise Wrong(f"{request.path}: {type(error).__name__}: {error}") from error
    finally:
        connection.close()
    if answer.status != 200:
        raise Wrong(
            f"{request.path}: status {answer.status}: {body[:300].decode(errors='replace')}"
        )
    return body, None if size is None else int(size)


def _call(port: int, request: Request) -> bytes:
    options = [("grpc.max_receive_message_length", -1), ("grpc.max_send_message_length", -1)]
    with grpc.insecure_channel(f"127.0.0.1:{port}", options) as channel:
        call: Any = channel.unary_unary(request.path)
        try:
            answer: bytes = call(request.body, timeout=PATIENCE_S, wait_for_ready=True)
        except grpc.RpcError as error:
            raise Wrong(f"{request.path}: {error.code().name}: {error.details()}") from error
    return answer


def read_http(body: bytes, json_size: int | None) -> Answer:
    document = json.loads(body[:json_size])
    found: dict[str, np.ndarray[Any, Any]] = {}
    at = json_size or 0
    for entry in document["outputs"]:
        size = entry.get("parameters", {}).get("binary_data_size")
        if size is None:
            array = np.array(entry["data"], _dtype(entry["datatype"]))
        else:
            array = np.frombuffer(body[at : at + size], _dtype(entry["datatype"]))
            at += size
        found[entry["name"]] = array.reshape(entry["shape"])
    return Answer(found, document.get("id", ""))


def read_grpc(data: bytes) -> Answer:
    """Return the content of a response with raw or typed output contents."""
    message = ModelInferResponse.FromString(data)
    found: dict[str, np.ndarray[Any, Any]] = {}
    for index, output in enumerate(message.outputs):
        if message.raw_output_contents:
            array = np.frombuffer(message.raw_output_contents[index], _dtype(output.datatype))
        else:
            array = np.array(output.contents.fp32_contents, np.float32)
        found[output.name] = array.reshape(list(output.shape))
    return Answer(found, message.id)


def _dtype(datatype: str) -> type[Any]:
    known: dict[str, type[Any]] = {"FP32": np.float32, "FP64": np.float64}
    if datatype not in known:
        raise Wrong(f"an output is {datatype}, expected FP32")
    return known[datatype]
