from core.request import InferenceRequest
from frontends.grpc.call import GrpcCall

class RequestReader:
    """Parses encoded ModelInferRequests. Not thread-safe: each event loop has its own.

    It caches names of models, inputs, outputs and parameters, so that a repeated name is not decoded again.

    held   number of bytes that the last `read` has counted with its ledger
    """

    held: int

    def read(self, data: bytes, ledger: GrpcCall | None = None) -> InferenceRequest | None:
        """Return the request in `data`; None if the decoder with protobuf must read it.

        ledger   counts large tensors of typed contents with `hold`, whose MemoryExhausted is raised

        Raw tensors of more than 512 bytes are normally views of `data` and keep it alive. The result is None
        for invalid bytes, for every error, for shared memory, and for parameters whose names begin with
        `triton_`. The existence of the model is not checked.
        """
