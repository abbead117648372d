"""What one lane holds of the memory of all connections. Loop thread only."""

from core.request import InferenceRequest

def made_bytes(request: InferenceRequest, has_binary: bool) -> int:
    """Return the bytes of the tensors that were made for a request, such as those of its JSON.

    has_binary   whether others view the body, or may do so
    """

class ConnectionMemory:
    """Counts bytes of bodies, tensors and answers; what is small is not taken from the account.

    Of use to compiled code alone.
    """
