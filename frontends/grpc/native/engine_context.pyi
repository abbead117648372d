import asyncio
from collections.abc import Callable, Mapping

from core.system.account import MemoryAccount
from frontends.grpc.method import Method
from frontends.grpc.native.connection import Connection
from frontends.grpc.options import GrpcOptions
from frontends.shared.call_observers import CallObservers

class EngineContext:
    """Methods, settings, limits and the read buffer of all connections of one listener. Loop thread only.

    methods              path → method
    account              the server's memory account
    observers            asked for each call
    compression_level    zlib's level for responses of methods that compress; 0 disables compression
    most_message_bytes   largest response message in bytes
    most_request_bytes   largest request message in bytes, also after decompression
    connections          open connections
    """

    connections: set[Connection]
    observers: CallObservers
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
        observers: CallObservers,
    ) -> None: ...
    def close(self, on_empty: Callable[[], None]) -> None:
        """Refuse new calls and connections, and return; each connection closes after its last call.

        `on_empty` is called when no connection is left: maybe within this call, and maybe more than once.
        """
    def cut_off(self) -> None:
        """End every call with the status UNAVAILABLE, and close every connection after its last bytes."""
    def abort(self) -> None:
        """Abort the transport of every connection: unsent bytes are lost."""
