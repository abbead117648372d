from core.request import InferenceRequest
from core.response import InferenceResponse
from core.tensor import Buffer

COPIED_BYTES: int  # largest total size of tensors that are copied into a response

def response(answer: InferenceResponse, request: InferenceRequest) -> bytes | list[Buffer] | None:
    """Return the encoded ModelInferResponse of `answer`, as bytes or as a list of consecutive buffers.

    If the tensors have more than COPIED_BYTES in all, each is a buffer of its own, without a copy. If the
    request uses shared memory, which the client may change, all are copied; outputs that the request places
    there have no bytes. Returns None if the encoder with protobuf must write the response or raise its error.
    """

def stream_response(
    answer: InferenceResponse, request: InferenceRequest, final: bool
) -> bytes | None:
    """Return the encoded ModelStreamInferResponse of `answer` as bytes, with copies of its tensors.

    final   whether it is the last response to its request: the parameter `triton_final_response`
    Returns None if the encoder with protobuf must write the response, or raise its error.
    """
