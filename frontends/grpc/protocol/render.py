"""InferenceResponse → bytes of a ModelInferResponse or a ModelStreamInferResponse.

native/infer_response.pyx encodes most responses. Protobuf encodes the others here, so that an error names the
invalid value. Both encode the message without its tensors and append their bytes: `raw_output_contents` is
the last field, so the result equals the encoding of the whole message.
"""

from __future__ import annotations

from core.errors import CoreError
from core.request import InferenceRequest, Parameter
from core.response import InferenceResponse
from core.tensor import Buffer
from frontends.grpc.native import infer_response
from frontends.grpc.protocol import parameters
from frontends.grpc.protocol.messages import ModelInferResponse, ModelStreamInferResponse
from frontends.grpc.status import utf8

FINAL = "triton_final_response"

_RAW_OUTPUT_CONTENTS = bytes([6 * 8 + 2])  # tag of field 6, length-delimited
_INFER_RESPONSE = bytes([2 * 8 + 2])  # the same of field 2 in ModelStreamInferResponse


def response_by_protobuf(answer: InferenceResponse, request: InferenceRequest) -> bytes:
    """Return the bytes of the response to a unary call, encoded by protobuf.

    Raises CoreError(INTERNAL) for a parameter of an invalid type.
    """
    return b"".join(_parts(answer, request, answer.parameters))


def stream_response(answer: InferenceResponse, request: InferenceRequest, final: bool) -> bytes:
    """Return the bytes of one response on a stream.

    final   whether it is the last one to its request

    Raises CoreError(INTERNAL) for a parameter of an invalid type.
    """
    message = infer_response.stream_response(answer, request, final)
    return message if message is not None else stream_response_by_protobuf(answer, request, final)


def stream_response_by_protobuf(
    answer: InferenceResponse, request: InferenceRequest, final: bool
) -> bytes:
    """Return and raise as `stream_response`, but always encode by protobuf."""
    parts = _parts(answer, request, {**answer.parameters, FINAL: final})
    size = sum(memoryview(part).nbytes for part in parts)
    return b"".join((_INFER_RESPONSE, _varint(size), *parts))


def stream_refusal(error: CoreError, id: str) -> bytes:
    """Return the bytes of the response on a stream to a request that was refused before its model had it."""
    return ModelStreamInferResponse(
        error_message=utf8(error.message), infer_response=ModelInferResponse(id=id)
    ).SerializeToString()


def stream_error(error: CoreError, id: str, model_name: str, version: str, final: bool) -> bytes:
    """Return the bytes of a response on a stream that tells of an error of the model.

    version   version in the request, "" for the newest
    final     whether it is the last response to the request
    """
    return ModelStreamInferResponse(
        error_message=utf8(error.message), infer_response=_empty(id, model_name, version, final)
    ).SerializeToString()


def stream_end(id: str, model_name: str, version: str) -> bytes:
    return ModelStreamInferResponse(
        infer_response=_empty(id, model_name, version, True)
    ).SerializeToString()


def _empty(id: str, model_name: str, version: str, final: bool) -> ModelInferResponse:
    message = ModelInferResponse(id=id, model_name=model_name, model_version=version)
    message.parameters[FINAL].bool_param = final
    return message


def _parts(
    answer: InferenceResponse, request: InferenceRequest, values: dict[str, Parameter]
) -> list[Buffer]:
    message = ModelInferResponse(
        id=answer.id, model_name=answer.model_name, model_version=str(answer.model_version)
    )
    for name, value in values.items():
        parameters.write(message.parameters[name], name, value)
    raws = []
    for tensor in answer.outputs:
        message.outputs.add(name=tensor.name, datatype=tensor.dtype.name, shape=tensor.shape)
        raws.append(b"" if request.placed(tensor.name) else tensor.raw)
    parts: list[Buffer] = [message.SerializeToString()]
    for raw in raws:
        parts += (_RAW_OUTPUT_CONTENTS, _varint(memoryview(raw).nbytes), raw)
    return parts


def _varint(number: int) -> bytes:
    if number < 0x80:
        return bytes((number,))
    groups = bytearray()
    while number >= 0x80:
        groups.append(number & 0x7F | 0x80)
        number >>= 7
    groups.append(number)
    return bytes(groups)
