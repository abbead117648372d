"""What of a connection is not the fast lane's. Loop thread only; of use to compiled code alone."""

class Guest:
    """The other engine on the connection of a lane: it has the connection until it has answered."""
