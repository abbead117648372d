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
from frontends.shared.call_observers import CallObservers
from frontends.shared.options import SharedOptions
from frontends.shared.watched_files import WatchedFiles


class Engine(ABC):
    """Serves methods over HTTP/2. Base class of the two engines. Loop thread only.

    methods   path → method
    files     watches the files of certificates
    account   counts the bytes that calls hold
    observers   asked for each call
    """

    def __init__(
        self,
        methods: Mapping[str, Method],
        options: Options,
        files: WatchedFiles,
        account: MemoryAccount,
        observers: CallObservers,
    ):
        self._options = transport.options_of(options)
        self._socket_mode = SharedOptions.of(options).unix_socket_mode
        self._account = account
        self._observers = observers
        self._files = files
        self._methods = methods

    @abstractmethod
    async def start(self) -> int:
        """Listen; return the port. If the option is 0, the system chooses one.

        On a Unix domain socket, return the port of the option, which is not used. Raises CoreError(INVALID)
        for certificates that cannot be used, CoreError(UNAVAILABLE) if the address is taken.
        """

    @abstractmethod
    async def stop(self, grace_s: float) -> None:
        """Accept no more calls, wait at most `grace_s` for those in progress, then cancel them."""


def engine(
    methods: Mapping[str, Method],
    options: Options,
    files: WatchedFiles,
    account: MemoryAccount,
    observers: CallObservers,
) -> Engine:
    """Return the engine that --grpc-engine names, not started; for auto the native one if it was built.

    grpcio is imported only for its own engine. Raises CoreError(UNAVAILABLE) for native if it was not built.
    """
    wanted = GrpcOptions.of(options).grpc_engine
    if wanted != "grpcio":
        try:
            found: Engine = import_module("frontends.grpc.engine_native").NativeEngine(
                methods, options, files, account, observers
            )
            return found
        except ImportError as error:
            if wanted == "native":
                raise unavailable(
                    f"--grpc-engine=native is not in this installation ({error}); install "
                    "libnghttp2-dev 1.50 or newer and build core again, or use --grpc-engine=grpcio"
                ) from None
    grpcio = import_module("frontends.grpc.engine_grpcio")
    fallback: Engine = grpcio.GrpcioEngine(methods, options, files, account, observers)
    return fallback
