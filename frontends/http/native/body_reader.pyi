"""How the body of a request comes in over a connection. Loop thread only; of use to compiled code alone."""

from frontends.http.native.response_writer import ResponseWriter

class BodyReader(ResponseWriter):
    """What a FastConnection is beside its heads: it receives bodies, as far as there is room for them."""

    def grow(self, size: int) -> bool:
        """Count `size` bytes more for the body that is being received, and return whether there is room."""
    def refused(self) -> None:
        """A BodyReceiver has got more of the body than there is room for."""
    def received(self) -> None:
        """The body is there: a BodyReceiver has got the rest of it."""
