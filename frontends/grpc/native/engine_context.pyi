import asyncio
from collections.abc import Callable, Mapping

from core.system.account import MemoryAccount
from frontends.grpc.method import Method
from frontends.grpc.native.connection import Connection
from frontends.grpc.options import GrpcOptions

class EngineContext:
    """The state that all connections of one listener share. Loop thread only.

    methods              path → method
    compression_level    level of zlib for responses of methods that compress; 0 disables compression
    most_message_bytes   largest response message
    most_request_bytes   largest request message, also after decompression
    connections          open connections
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
        """Refuse new calls and connections; each connection ends with its last call.

        `on_empty` is called when no connection is left, maybe within this call, and maybe more than once.
        """
    def cut_off(self) -> None:
        """End every call with UNAVAILABLE, and then every connection."""
    def abort(self) -> None:
        """Abort the transport of every connection."""
