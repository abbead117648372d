from core.errors import CoreError
from frontends.grpc.call import Metadata
from frontends.grpc.method import Message
from frontends.grpc.native.engine_context import EngineContext

class Handle:
    """Sends the responses and the status of one call. Created by the connection; loop thread only.

    over                whether the call has its status, or its client has disconnected
    request_encoding    compression of the client's compressed messages: 1 gzip, 2 deflate, else 0
    response_encoding   compression for the responses, 0 for none
    """

    over: bool
    @property
    def port(self) -> EngineContext: ...
    @property
    def request_encoding(self) -> int: ...
    @property
    def response_encoding(self) -> int: ...
    def __call__(self, result: Message | CoreError) -> None:
        """Complete a unary call with a response or an error, as `done` of its method; once only."""
    def answer(self, message: Message, compressed: bool) -> None:
        """Send the only message of the response, already compressed or not, and the status OK."""
    def send(self, message: Message, compressed: bool) -> bool | None:
        """Send one message; its buffers stay in use until they are sent.

        Returns False if the method should wait before it sends more, None if the call is over or the message
        is not sent.
        """
    def finish(self, code: int, text: str) -> None:
        """End the call with a gRPC status. A second call does nothing."""
    def taken(self, size: int) -> None:
        """Permit the client to send more, after the method consumed a message of `size` received bytes."""
    def hold(self, size: int, what: str) -> None:
        """Count `size` bytes of `what` until the call is over. Raises MemoryExhausted."""
    def release(self, size: int) -> None:
        """Release `size` bytes of those that `hold` has counted."""
    def hold_unpaid(self, size: int, what: str) -> None:
        """Count `size` decompressed bytes of `what` beyond the limit that the compressed size permits, until
        the call is over. Raises MemoryExhausted."""
    def release_unpaid(self, size: int) -> None:
        """Release `size` bytes of those that `hold_unpaid` has counted."""
    def metadata(self) -> Metadata:
        """Return the metadata of the client; empty after the end of the call."""
