"""What the head of a request for inference says. Loop thread only; of use to compiled code alone."""

class RequestHead:
    """The bytes of a head and what they mean, for a client whose next head is the same."""
