"""How the answers of a connection leave. Loop thread only; of use to compiled code alone."""

from frontends.http.native.listener_context import ListenerContext

class ResponseWriter:
    """Writes the answers of a connection in the order of its requests, and waits for slow clients."""

    def __init__(self, context: ListenerContext) -> None: ...
    def turn(self) -> None:
        """The end of a turn of the loop in which answers came."""
    def send_more(self) -> None:
        """The transport has taken what it got."""
    def cut(self) -> None:
        """Close now; running requests are cancelled."""
