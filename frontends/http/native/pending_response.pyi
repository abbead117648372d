"""PendingResponse: a running request, and its response as bytes. Loop thread only; for compiled code only."""

from core.errors import CoreError
from core.response import InferenceResponse, ReplyListener

class ResponseSink:
    """Base class of a connection, which owns pending responses and writes them."""

class PendingResponse(ReplyListener):
    """The listener of one Reply: it makes one HTTP response of the reply's items.

    At the final item it builds the response: head and body as one object, or, if they are large, as buffers
    that include the tensors without a copy. A CoreError gives its error response; another exception is logged
    and gives status 500. A reply without exactly one response gives an error.
    """

    def receive(self, item: InferenceResponse | CoreError | None, final: bool) -> None: ...
