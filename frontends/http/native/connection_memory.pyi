"""ConnectionMemory: one connection's share of the memory account. Loop thread only."""

from core.request import InferenceRequest

def made_bytes(request: InferenceRequest, has_binary: bool) -> int:
    """Return the size in bytes of the tensors that were created for a request, such as tensors in JSON.

    has_binary   whether tensors of the request may be views of its body
    """

class ConnectionMemory:
    """Counts the bytes of bodies, tensors and responses of one connection.

    Only bytes beyond a small amount are taken from the memory account. For compiled code only.
    """
