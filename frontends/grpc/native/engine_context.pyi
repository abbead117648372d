import asyncio
from collections.abc import Callable, Mapping

from core.system.account import MemoryAccount
from frontends.grpc.method import Method
from frontends.grpc.native.connection import Connection
from frontends.grpc.options import GrpcOptions

class EngineContext:
    """What the connections of one engine share. Loop thread only.

    methods              path → method
    compression_level    zlib's, for responses of methods that compress; 0 for none
    most_message_bytes   largest message, each way
    most_request_bytes   largest message of a client, also when it is unpacked
    connections          those that are open
    """

    connections: set[Connection]
    compression_level: int
    most_message_bytes: int
    most_request_bytes: int

    def __init__(
        self,
        methods: Mapping[str, Method],
        options: GrpcOptions,
        loop: asyncio.AbstractEventLoop,
        compression_level: int,
        most_message_bytes: int,
        account: MemoryAccount,
    ) -> None: ...
    def close(self, on_empty: Callable[[], None]) -> None:
        """Let connections end with their last call, and take no new ones.

        `on_empty` is called when no connection is left, perhaps at once and more than once.
        """
    def cut_off(self) -> None:
        """End every call with UNAVAILABLE, and every connection after that."""
    def abort(self) -> None:
        """End every connection without a word."""
