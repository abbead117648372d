"""One request without an answer yet, and its answer as bytes. Loop thread only; for compiled code."""

from core.errors import CoreError
from core.response import InferenceResponse, ReplyListener

class ResponseSink:
    """Who waits for the answers of pending responses."""

class PendingResponse(ReplyListener):
    """The listener of one Reply.

    The answer is made when the final item comes: head and body in one object, or, if they are large,
    as buffers of which the tensors are those of the response. An error has the answer that it has
    everywhere; one that no room expected is logged and answers 500.
    """

    def receive(self, item: InferenceResponse | CoreError | None, final: bool) -> None: ...
