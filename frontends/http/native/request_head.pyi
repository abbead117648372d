"""RequestHead: the parsed head of a request for inference. Loop thread only; for compiled code only."""

class RequestHead:
    """The bytes of a head and their meaning, kept for a client that repeats the head."""
