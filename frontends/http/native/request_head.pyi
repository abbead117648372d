"""RequestHead: the parsed head of a request for inference. Loop thread only; for compiled code only."""

class RequestHead:
    """The parsed head of a request, kept for later requests of the connection that repeat the head."""
