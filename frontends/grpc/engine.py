"""Engine: serves methods over a transport. `engine` chooses the one of --grpc-engine."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from importlib import import_module

from core.errors import unavailable
from core.options import Options
from core.system.account import MemoryAccount
from frontends.grpc import transport
from frontends.grpc.method import Method
from frontends.grpc.options import GrpcOptions
from frontends.shared.options import SharedOptions
from frontends.shared.watched_files import WatchedFiles


class Engine(ABC):
    """Serves a table of methods. Loop thread only.

    files     watches certificates
    account   of the bytes that calls hold
    """

    def __init__(
        self,
        methods: Mapping[str, Method],
        options: Options,
        files: WatchedFiles,
        account: MemoryAccount,
    ):
        self._options = transport.options_of(options)
        self._socket_mode = SharedOptions.of(options).unix_socket_mode
        self._account = account
        self._files = files
        self._methods = methods

    @abstractmethod
    async def start(self) -> int:
        """Listen; return the port. If the option is 0 the system chooses one.

        Raises CoreError(INVALID) for certificates that cannot be used, CoreError(UNAVAILABLE) if
        the address is taken.
        """

    @abstractmethod
    async def stop(self, grace_s: float) -> None:
        """Accept no more calls, wait at most `grace_s` for those in progress, then cancel them."""


def engine(
    methods: Mapping[str, Method], options: Options, files: WatchedFiles, account: MemoryAccount
) -> Engine:
    """Return the engine of the options, not started. The other one is not imported.

    Raises CoreError(UNAVAILABLE) if --grpc-engine=native is not in this installation.
    """
    wanted = GrpcOptions.of(options).grpc_engine
    if wanted != "grpcio":
        try:
            found: Engine = import_module("frontends.grpc.engine_native").NativeEngine(
                methods, options, files, account
            )
            return found
        except ImportError as error:
            if wanted == "native":
                raise unavailable(
                    f"--grpc-engine=native is not in this installation ({error}); install "
                    "libnghttp2-dev 1.50 or newer and build core again, or use --grpc-engine=grpcio"
                ) from None
    grpcio = import_module("frontends.grpc.engine_grpcio")
    fallback: Engine = grpcio.GrpcioEngine(methods, options, files, account)
    return fallback
