"""ResponseWriter: writes the responses of a connection. Loop thread only; for compiled code only."""

from frontends.http.native.listener_context import ListenerContext

class ResponseWriter:
    """Writes the responses of a connection in the order of its requests, and waits for slow clients."""

    def __init__(self, context: ListenerContext) -> None: ...
    def turn(self) -> None:
        """Write the responses that became ready in this iteration of the loop, with one call."""
    def send_more(self) -> None:
        """Send the next piece of large responses; do nothing while the transport is paused."""
    def cut(self) -> None:
        """Close the connection now; running requests are cancelled."""
