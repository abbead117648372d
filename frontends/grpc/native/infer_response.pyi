from core.request import InferenceRequest
from core.response import InferenceResponse
from core.tensor import Buffer

COPIED_BYTES: int  # largest total size of tensors that are copied into a response

def response(answer: InferenceResponse, request: InferenceRequest) -> bytes | list[Buffer] | None:
    """Return the encoded ModelInferResponse of `answer`, as one object or as consecutive parts.

    A large tensor is a part without a copy, unless the request uses shared memory, which the client may
    change before the part is sent. None if the encoder with protobuf must write it, or raise its error.
    """

def stream_response(
    answer: InferenceResponse, request: InferenceRequest, final: bool
) -> bytes | None:
    """Return the encoded ModelStreamInferResponse of `answer` as one object; None as for `response`.

    final   whether it is the last response to its request; a parameter of the message says so
    """
