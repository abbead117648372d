from core.request import InferenceRequest
from core.response import InferenceResponse
from core.tensor import Buffer
from frontends.grpc.call import GrpcCall

COPIED_BYTES: int  # tensors of a response that are, together, no more than this are copied into it

class RequestReader:
    """Makes requests of encoded ModelInferRequests. One thread at a time: a loop has its own.

    It remembers some names of models, inputs, outputs and parameters, so that a name that comes
    again is not decoded again.

    held   bytes that the ledger of the last message has counted
    """

    held: int

    def read(self, data: bytes, ledger: GrpcCall | None = None) -> InferenceRequest | None:
        """The request in `data`; None if it must be read the long way, which tells what is wrong.

        ledger   counts tensors that are made of typed contents, with `hold`, which may raise

        Tensors of more than some hundred bytes are views of `data` and keep it alive. None is for
        bytes that are no message, refusals of any kind, shared memory, and parameters whose names
        begin with `triton_`. Whether there is such a model is not looked at.
        """

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
