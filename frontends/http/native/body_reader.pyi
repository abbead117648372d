"""BodyReader: receives the body of a request over a connection. Loop thread only; for compiled code only."""

from frontends.http.native.response_writer import ResponseWriter

class BodyReader(ResponseWriter):
    """The part of a FastConnection that receives bodies, within the memory account."""

    def grow(self, size: int) -> bool:
        """Count `size` bytes more for the current body; return False if the memory account refuses them."""
    def refused(self) -> None:
        """Answer the request of a BodyReceiver with an error, after `grow` has returned False to it."""
    def received(self) -> None:
        """Submit the request of a BodyReceiver, which has received the rest of the body."""
