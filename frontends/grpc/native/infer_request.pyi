from core.request import InferenceRequest
from frontends.grpc.call import GrpcCall

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
