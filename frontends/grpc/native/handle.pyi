from core.errors import CoreError
from frontends.grpc.call import Metadata
from frontends.grpc.method import Message
from frontends.grpc.native.engine_context import EngineContext

class Handle:
    """The engine's side of one call. Made by the connection; loop thread only.

    over                whether the call has its status, or nobody waits for one
    request_encoding    how compressed messages of the client are packed: 1 gzip, 2 deflate, else 0
    response_encoding   how responses should be packed, 0 for not at all
    """

    over: bool
    @property
    def port(self) -> EngineContext: ...
    @property
    def request_encoding(self) -> int: ...
    @property
    def response_encoding(self) -> int: ...
    def __call__(self, result: Message | CoreError) -> None:
        """Answer a unary call; the `done` of its method. A second answer does nothing."""
    def answer(self, message: Message, compressed: bool) -> None:
        """Send the only message of the response as it is, and that all went well."""
    def send(self, message: Message, compressed: bool) -> bool | None:
        """Send one message; its buffers stay in use until they are sent.

        Returns False if the method should wait for room before it sends more, None if nobody waits
        for the message.
        """
    def finish(self, code: int, text: str) -> None:
        """End the call with a status of gRPC. A second end does nothing."""
    def taken(self, size: int) -> None:
        """The method has taken a message of `size` bytes, as they came: the client may send more."""
    def hold(self, size: int, what: str) -> None:
        """Count `size` bytes of `what` until the call is over. Raises MemoryExhausted."""
    def release(self, size: int) -> None:
        """Count `size` bytes less, of those that `hold` counted."""
    def hold_unpaid(self, size: int, what: str) -> None:
        """Count `size` bytes of `what` that decompression makes and its sender did not pay for, until the
        call is over. Raises MemoryExhausted."""
    def release_unpaid(self, size: int) -> None:
        """Count `size` such bytes less."""
    def metadata(self) -> Metadata:
        """What the client sent along; nothing once the call is over."""
