from core.request import InferenceRequest
from frontends.grpc.call import GrpcCall

class RequestReader:
    """Parses encoded ModelInferRequests. Not thread-safe: each loop has its own.

    It caches names of models, inputs, outputs and parameters, so that a repeated name is not decoded again.

    held   bytes of the last message that its ledger has counted
    """

    held: int

    def read(self, data: bytes, ledger: GrpcCall | None = None) -> InferenceRequest | None:
        """Return the request in `data`; None if the decoder with protobuf must read it.

        ledger   counts tensors from typed contents with `hold`, which may raise MemoryExhausted

        Tensors of more than 512 bytes are views of `data` and keep it alive. None is the result for invalid
        bytes, for every error, for shared memory, and for parameters whose names begin with `triton_`. The
        existence of the model is not checked.
        """
