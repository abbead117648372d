"""The methods over grpcio, on the event loop of the server.

connection ─► [engine] ─► method.  Requests and responses stay bytes here. The only file that imports
grpcio.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import os
import time
from collections.abc import AsyncIterator, Mapping
from typing import Any, NoReturn, TypeAlias

import grpc
import grpc.aio

from core import unix_sockets
from core.account import MemoryAccount, Share
from core.errors import CoreError, internal, unavailable
from core.heap import FreeMemoryWatch
from core.options import Options
from frontends.grpc import transport
from frontends.grpc.call import GrpcCall, Metadata
from frontends.grpc.method import Method, UnaryMethod
from frontends.grpc.options import GrpcOptions
from frontends.grpc.status import Code, code_of, details, unforeseen
from frontends.shared.options import SharedOptions
from frontends.shared.tls import Certificates
from frontends.shared.watched_files import WatchedFiles

logger = logging.getLogger("core")

Context = Any  # grpc.aio.ServicerContext, whose stubs lack what it inherits
Handler: TypeAlias = "grpc.RpcMethodHandler[bytes, bytes]"

_STATUS_CODES = {code.value[0]: code for code in grpc.StatusCode}


class GrpcioEngine:
    """A grpcio server for a table of methods. Loop thread only."""

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
        self._server: grpc.aio.Server | None = None
        self._certificates: NewCertificates | None = None  # those of a server with TLS
        self._file: unix_sockets.SocketFile | None = None  # of a Unix domain socket
        self._watching: asyncio.Task[None] | None = None
        self._stopping = False
        self._memory = FreeMemoryWatch()

    async def start(self) -> int:
        """Listen; the port, which the system chose if the option is 0.

        Raises CoreError(INVALID) for certificates that cannot be used, CoreError(UNAVAILABLE) if
        the address is taken.
        """
        address = transport.address(self._options)
        self._certificates = _certificates(self._options, self._files)
        port = await self._serve(address)
        # Where it begins again, should it have to: the system must not choose another port then.
        bound = address
        if not unix_sockets.is_unix(address):
            bound = f"{address.rpartition(':')[0]}:{port}"
        self._watching = asyncio.ensure_future(self._watch(bound))
        self._memory.start(asyncio.get_running_loop())  # grpcio's own memory is in no account
        return port

    async def _serve(self, address: str) -> int:
        """A new server of grpcio; its port. Raises as `start`."""
        options = self._options
        certificates = None if self._certificates is None else self._certificates.credentials()
        logging.getLogger("grpc._cython.cygrpc").addFilter(_worth_logging)
        server = grpc.aio.server(options=transport.channel_arguments(options))
        compresses = transport.compresses(options)
        handlers = {
            path: _handler(each, compresses, self._account) for path, each in self._methods.items()
        }
        server.add_generic_rpc_handlers((MethodRouter(handlers),))
        if unix_sockets.is_unix(address):
            self._file = _bind_at(server, address, certificates, self._socket_mode)
            port = options.grpc_port
        else:
            port = _bind(server, address, certificates)
        await server.start()
        self._server = server
        return port

    async def stop(self, grace_s: float) -> None:
        """Take no more calls, wait at most `grace_s` for those in progress, then cut them off."""
        self._stopping = True
        self._memory.stop()
        if self._server is not None:
            await self._server.stop(grace_s)
        if self._watching is not None:
            await self._watching
        if self._file is not None:
            self._file.remove()

    async def _watch(self, address: str) -> None:
        """Begin again when grpcio gives up.

        It does when the path of a call is no UTF-8: whoever sends one ends the server, and all its
        calls, in every release until now.
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
    """The port. Raises CoreError(UNAVAILABLE) if the address is taken."""
    try:
        if certificates is None:
            port = server.add_insecure_port(address)
        else:
            port = server.add_secure_port(address, certificates)
    except RuntimeError:
        port = 0
    if not port:
        raise unavailable(f"Socket '{address}' already in use ")
    return int(port)


def _bind_at(
    server: grpc.aio.Server, address: str, certificates: grpc.ServerCredentials | None, mode: str
) -> unix_sockets.SocketFile:
    """Bind to a Unix domain socket; its file. Raises CoreError(UNAVAILABLE) when that cannot be.

    mode   permissions of the file, in octal
    """
    if address in unix_sockets.inherited:
        raise unavailable(
            f"--grpc-engine=grpcio cannot share '{address}' between workers: it takes no socket that is "
            "there; use --grpc-engine=native, or one worker"
        )
    path = unix_sockets.make_free(address)
    # grpcio makes the file: with the permissions of the process, for this moment.
    before = os.umask(0o777 & ~int(mode, 8))
    try:
        _bind(server, address, certificates)
    finally:
        os.umask(before)
    return unix_sockets.SocketFile(path)


class NewCertificates:
    """What grpcio asks before each handshake: certificates that are newer than those it has.

    Written on the loop's thread, asked on grpcio's. One server of grpcio after the other may ask, not two.
    """

    def __init__(self, files: Certificates):
        """Raises as Certificates.context."""
        self._files = files
        self._newer: grpc.ServerCertificateConfiguration | None = None
        self._latest = self._read()

    def credentials(self) -> grpc.ServerCredentials:
        """For a new server of grpcio: it begins with the latest, and asks then."""
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


def _certificates(options: GrpcOptions, watched: WatchedFiles) -> NewCertificates | None:
    """Those of a TLS server, None for one without TLS; raises as Certificates.context."""
    files = transport.certificates(options)
    if files is None:
        return None
    newer = NewCertificates(files)
    watched.add(files.what, files.paths, newer.renew)
    return newer


def _worth_logging(record: logging.LogRecord) -> bool:
    """False for what grpcio logs, with its traceback, when a client leaves just before its answer."""
    kind = record.exc_info[0] if record.exc_info else None
    return kind is None or not issubclass(kind, grpc.aio.InternalError)


class MethodRouter(grpc.GenericRpcHandler):
    """Path of a call → its handler."""

    def __init__(self, handlers: Mapping[str, Handler]):
        self._handlers = handlers

    def service(self, handler_call_details: grpc.HandlerCallDetails) -> Handler | None:
        return self._handlers.get(handler_call_details.method)


class _Source:
    """What a call knows of itself: its context of grpcio, and what it holds of the server's memory.

    grpcio does not say which calls share a connection, so each call has a share of its own.
    """

    def __init__(self, context: Context, share: Share):
        self._context = context
        self._share = share

    def metadata(self) -> Metadata:
        return self._context.invocation_metadata() or ()

    def peer(self) -> str:
        return str(self._context.peer())

    def hold(self, size: int, what: str) -> None:
        self._share.take(size, what)

    def release(self, size: int) -> None:
        self._share.give(size)


def _handler(method: Method, compresses: bool, account: MemoryAccount) -> Handler:
    """What grpcio calls for a method; without serializers, so that bytes stay bytes.

    grpcio receives the message of a unary call before it calls the handler. A method with an `enter` is
    therefore one that streams to grpcio, whose handler decides itself when to receive.

    compresses   whether the server compresses responses unless they are excepted
    """
    run = _Run(method, compresses and not method.compress, account)
    if not isinstance(method, UnaryMethod):
        return grpc.stream_stream_rpc_method_handler(run.stream)
    if method.enter is not None:
        return grpc.stream_stream_rpc_method_handler(run.entered_unary)
    return grpc.unary_unary_rpc_method_handler(run.unary)


class _Run:
    """Runs the calls of one method.

    plain   whether responses are excepted from the compression of the server
    """

    def __init__(self, method: Method, plain: bool, account: MemoryAccount):
        self._method = method
        self._plain = plain
        self._account = account

    async def unary(self, request: bytes, context: Context) -> bytes:
        async with self._running(context) as call:
            return await self._answered(request, call, context)
        raise AssertionError("abort raises")

    async def entered_unary(self, requests: AsyncIterator[bytes], context: Context) -> None:
        async with self._running(context) as call:
            request = await anext(requests, None)
            if request is None:
                raise internal("a unary call has one message")
            await context.write(await self._answered(request, call, context))

    async def stream(self, requests: AsyncIterator[bytes], context: Context) -> None:
        function: Any = self._method.function
        async with (
            self._running(context) as call,
            contextlib.aclosing(function(self._noted(requests, call), call)) as responses,
        ):
            async for response in responses:
                if call.active is not None:
                    call.sent(response)
                if self._plain:
                    context.disable_next_message_compression()
                await context.write(response)

    def _noted(self, requests: AsyncIterator[bytes], call: GrpcCall) -> AsyncIterator[bytes]:
        """Return the requests of a stream, each of which `Method.received` sees."""
        received = self._method.received
        if received is None:
            return requests

        async def noted() -> AsyncIterator[bytes]:
            async for request in requests:
                received(call, request)
                yield request

        return noted()

    async def _answered(self, request: bytes, call: GrpcCall, context: Context) -> bytes:
        if self._method.received is not None:
            self._method.received(call, request)
        call.hold(len(request), "a message")
        if self._plain:
            context.disable_next_message_compression()
        function: Any = self._method.function
        answer: bytes = await function(request, call)
        if call.active is not None:
            call.sent(answer)
            call.end(Code.OK)
        return answer

    @contextlib.asynccontextmanager
    async def _running(self, context: Context) -> AsyncIterator[GrpcCall]:
        """A call that entered; what is raised within becomes its status."""
        share = self._account.share()
        call = GrpcCall(None, _deadline_ns(context), _Source(context, share))
        try:
            if self._method.enter is not None:
                call.active = self._method.enter(call)
            yield call
            call.end(Code.OK)
        except CoreError as error:
            call.end(code_of(error))
            await _abort(context, error)
        except asyncio.CancelledError:
            call.cancel()
            raise
        except grpc.aio.InternalError:  # the client went away while it was written to
            call.cancel()
            raise asyncio.CancelledError from None
        except grpc.aio.AbortError:
            raise
        except Exception as error:
            call.end(Code.INTERNAL)
            await _abort(context, unforeseen(self._method.path, error))
        finally:
            call.end(Code.CANCELLED)  # if it has not ended
            share.close()


def _deadline_ns(context: Context) -> int:
    remaining_s = context.time_remaining()
    return 0 if remaining_s is None else time.monotonic_ns() + int(remaining_s * 1e9)


async def _abort(context: Context, error: CoreError) -> NoReturn:
    await context.abort(_STATUS_CODES[code_of(error)], details(error.message))
    raise AssertionError("abort raises")
