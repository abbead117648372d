"""The engine on grpcio, on the event loop of the server.

connection ─► [engine] ─► grpcio_calls.py ─► method.  These two files alone import grpcio.
"""

from __future__ import annotations

import asyncio
import logging
import os
from typing import Any

import grpc
import grpc.aio

from core.errors import CoreError, unavailable
from frontends.grpc import transport
from frontends.grpc.engine import Engine
from frontends.grpc.free_memory import FreeMemoryWatch
from frontends.grpc.grpcio_calls import MethodRouter
from frontends.shared import unix_sockets
from frontends.shared.inherited_sockets import is_inherited
from frontends.shared.ports import in_use
from frontends.shared.tls import Certificates

logger = logging.getLogger("core")


class GrpcioEngine(Engine):
    """Serves methods with a server of grpcio, and with a new one if grpcio ends it."""

    def __init__(self, *arguments: Any):
        super().__init__(*arguments)
        self._server: grpc.aio.Server | None = None
        self._certificates: NewCertificates | None = None  # those of a server with TLS
        self._file: unix_sockets.SocketFile | None = None  # of a Unix domain socket
        self._watching: asyncio.Task[None] | None = None
        self._stopping = False
        self._memory = FreeMemoryWatch()

    async def start(self) -> int:
        address = transport.address(self._options)
        if self._options.has_tls:
            certificates = Certificates.of("grpc", self._options)
            self._certificates = NewCertificates(certificates)
            self._files.add(certificates.what, certificates.paths, self._certificates.renew)
        port = await self._serve(address)
        # A restart uses the same port, also if the system chose it.
        bound = address
        if not unix_sockets.is_unix(address):
            bound = f"{address.rpartition(':')[0]}:{port}"
        self._watching = asyncio.ensure_future(self._watch(bound))
        self._memory.start(asyncio.get_running_loop())  # grpcio's own memory is in no account
        return port

    async def _serve(self, address: str) -> int:
        """Start a new grpcio server at an address; return its port. Raises as `start`.

        Raises CoreError(UNAVAILABLE) also for an address that a worker inherits.
        """
        options = self._options
        certificates = None if self._certificates is None else self._certificates.credentials()
        logging.getLogger("grpc._cython.cygrpc").addFilter(_worth_logging)
        server = grpc.aio.server(options=transport.channel_arguments(options))
        router = MethodRouter(
            self._methods,
            bool(transport.compression_level(options)),
            self._account,
            self._observers,
        )
        server.add_generic_rpc_handlers((router,))
        if is_inherited(address):
            raise unavailable(
                f"--grpc-engine=grpcio cannot share '{address}' between workers: it takes no socket that is "
                "there; use --grpc-engine=native, or one worker"
            )
        if unix_sockets.is_unix(address):
            self._file = _bind_at(server, address, certificates, self._socket_mode)
            port = options.grpc_port
        else:
            port = _bind(server, address, certificates)
        await server.start()
        self._server = server
        return port

    async def stop(self, grace_s: float) -> None:
        self._stopping = True
        self._memory.stop()
        if self._server is not None:
            await self._server.stop(grace_s)
        if self._watching is not None:
            await self._watching
        if self._file is not None:
            self._file.remove()

    async def _watch(self, address: str) -> None:
        """Start a new grpcio server whenever grpcio ends the old one, until `stop`, or a start fails.

        Every release until now ends the server, and all its calls, when the path of a call is not UTF-8.
        """
        while self._server is not None:
            try:
                await self._server.wait_for_termination()
            except Exception as error:
                logger.debug("grpcio: %r", error)
            if self._stopping:
                return
            logger.error("grpcio has given up serving at %s: it begins again", address)
            try:
                await self._serve(address)
            except CoreError as error:
                logger.error("gRPC is not served any more: %s", error.message)
                return


def _bind(
    server: grpc.aio.Server, address: str, certificates: grpc.ServerCredentials | None
) -> int:
    """Bind to an address; return the port. Raises CoreError(UNAVAILABLE) if the address is taken."""
    try:
        if certificates is None:
            port = server.add_insecure_port(address)
        else:
            port = server.add_secure_port(address, certificates)
    except RuntimeError:
        port = 0
    if not port:
        raise in_use(address, "grpc")
    return int(port)


def _bind_at(
    server: grpc.aio.Server, address: str, certificates: grpc.ServerCredentials | None, mode: str
) -> unix_sockets.SocketFile:
    """Bind to a Unix domain socket; return its file. Raises CoreError(UNAVAILABLE) if that is not possible.

    address   unix:/path
    mode      permissions of the file, in octal
    """
    path = unix_sockets.make_free(address)
    # grpcio makes the file with the permissions of the process, so they are changed while it does.
    before = os.umask(0o777 & ~int(mode, 8))
    try:
        _bind(server, address, certificates)
    finally:
        os.umask(before)
    return unix_sockets.SocketFile(path)


class NewCertificates:
    """Gives grpcio newer certificates: grpcio calls it before each handshake.

    The call returns certificates that `renew` has read since the last one; None if there are none. `renew` is
    called on the event loop's thread, the rest on grpcio's. Only one grpcio server at a time may use it.
    """

    def __init__(self, files: Certificates):
        """Read the certificates in `files`. Raises as Certificates.context."""
        self._files = files
        self._newer: grpc.ServerCertificateConfiguration | None = None
        self._latest = self._read()

    def credentials(self) -> grpc.ServerCredentials:
        """Return credentials for a new grpcio server: the latest certificates, and this object for newer."""
        fetch: Any = self  # its stubs do not know that there may be nothing newer
        return grpc.dynamic_ssl_server_credentials(
            self._latest, fetch, require_client_authentication=self._files.mutual
        )

    def renew(self) -> None:
        self._latest = self._newer = self._read()

    def __call__(self) -> grpc.ServerCertificateConfiguration | None:
        newer, self._newer = self._newer, None
        return newer

    def _read(self) -> grpc.ServerCertificateConfiguration:
        files = self._files
        files.context("h2")  # says which file is bad and why; grpcio does not
        chain = [(files.pem("server-key", files.key), files.pem("server-cert", files.certificate))]
        root = files.pem("root-cert", files.root) if files.mutual or files.root else None
        return grpc.ssl_server_certificate_configuration(chain, root)


def _worth_logging(record: logging.LogRecord) -> bool:
    """Return False for a log record with grpcio's InternalError, else True.

    grpcio logs that traceback when a client leaves just before its answer.
    """
    kind = record.exc_info[0] if record.exc_info else None
    return kind is None or not issubclass(kind, grpc.aio.InternalError)
