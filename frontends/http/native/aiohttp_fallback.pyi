"""What of a connection is not the fast path's. Loop thread only; of use to compiled code alone."""

class AiohttpFallback:
    """The other engine on the connection of a connection: it has the connection until it has answered."""
