from core.errors import CoreError
from frontends.grpc.call import Metadata
from frontends.grpc.method import Message
from frontends.grpc.native.engine_context import EngineContext

class Handle:
    """Sends the responses and the status of one call. Created by the connection; loop thread only.

    over                whether the call has its status, or its client has cancelled it or disconnected
    port                the listener's EngineContext
    request_encoding    compression of the client's compressed messages: 1 gzip, 2 deflate, 0 none
    response_encoding   compression of the responses, the same numbers; 0 also if the method does not compress
    """

    over: bool
    @property
    def port(self) -> EngineContext: ...
    @property
    def request_encoding(self) -> int: ...
    @property
    def response_encoding(self) -> int: ...
    def __call__(self, result: Message | CoreError) -> None:
        """Complete a unary call with its response, compressed if needed, or an error. Ignored if over."""
    def answer(self, message: Message, compressed: bool) -> None:
        """Send the only message of a unary response and the status OK.

        compressed   whether `message` is compressed already, with `response_encoding`
        """
    def send(self, message: Message, compressed: bool) -> bool | None:
        """Send one message. Do not change its buffers: they are read until they are sent.

        compressed   whether `message` is compressed already, with `response_encoding`
        Returns True if the method may send more now, False if it should wait for room. Returns None if the
        message is not sent: the call is over, or ends now because the message is too large or the memory
        account refuses it.
        """
    def finish(self, code: int, text: str) -> None:
        """End the call with a gRPC status. A second call does nothing."""
    def taken(self, size: int) -> None:
        """Permit the client to send more: the method has consumed a message of `size` bytes as received."""
    def hold(self, size: int, what: str) -> None:
        """Count `size` bytes of `what` until the call is over. Raises MemoryExhausted."""
    def release(self, size: int) -> None:
        """Release `size` bytes of those that `hold` has counted."""
    def hold_unpaid(self, size: int, what: str) -> None:
        """Count `size` bytes that the decompression of `what` takes beyond what its compressed size pays for,
        until the call is over. Raises MemoryExhausted."""
    def release_unpaid(self, size: int) -> None:
        """Release `size` bytes of those that `hold_unpaid` has counted."""
    def metadata(self) -> Metadata:
        """Return the client's metadata as (name, value) pairs; () after the end of the call."""
    def peer(self) -> str:
        """Return the address of the client, as in `ipv4:127.0.0.1:5000`, `ipv6:[::1]:5000` or `unix:`."""
    def certificate(self) -> str:
        """Return the name in the certificate of the client; "" if it has shown none."""
