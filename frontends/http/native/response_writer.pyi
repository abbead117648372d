"""ResponseWriter: writes the responses of a connection. Loop thread only; for compiled code only."""

from frontends.http.native.listener_context import ListenerContext

class ResponseWriter:
    """Writes the responses of a connection in the order of its requests, and waits for slow clients."""

    def __init__(self, context: ListenerContext) -> None: ...
    def turn(self) -> None:
        """Write the responses that became ready in one iteration of the loop."""
    def send_more(self) -> None:
        """Send the next piece of large responses, after the transport has taken the last one."""
    def cut(self) -> None:
        """Close the connection now; running requests are cancelled."""
