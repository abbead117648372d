from core.request import InferenceRequest
from core.response import InferenceResponse
from core.tensor import Buffer

COPIED_BYTES: int  # tensors of a response that are, together, no more than this are copied into it

def response(answer: InferenceResponse, request: InferenceRequest) -> bytes | list[Buffer] | None:
    """The ModelInferResponse of `answer`, whole or in parts that follow one another.

    A large tensor is a part of its own and is not copied, unless the request uses shared memory,
    which its owner may change before the part is sent. None for an answer that has to be written
    the long way, which tells what is wrong with it.
    """

def stream_response(
    answer: InferenceResponse, request: InferenceRequest, final: bool
) -> bytes | None:
    """The same as a ModelStreamInferResponse, always whole.

    final   whether it is the last one to its request, which a parameter of the answer says
    """
