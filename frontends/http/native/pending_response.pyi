"""PendingResponse: a running request, and its response as bytes. Loop thread only; for compiled code only."""

from core.errors import CoreError
from core.response import InferenceResponse, ReplyListener

class ResponseSink:
    """The owner of pending responses: a connection."""

class PendingResponse(ReplyListener):
    """The listener of one Reply.

    The final item creates the response: head and body in one object, or, if they are large, as buffers that
    include the tensors of the response without a copy. A CoreError gives its error response; another
    exception is logged and gives status 500.
    """

    def receive(self, item: InferenceResponse | CoreError | None, final: bool) -> None: ...
