"""ConnectionMemory: one connection's share of the memory account. Loop thread only."""

from core.request import InferenceRequest

def made_bytes(request: InferenceRequest, has_binary: bool) -> int:
    """Return the bytes of the tensors that were created for a request, such as tensors in JSON.

    has_binary   whether tensors of the request may be views of its body
    """

class ConnectionMemory:
    """Counts bytes of bodies, tensors and responses; small amounts do not reach the account.

    For compiled code only.
    """
