"""Router: what all connections of clients share, and the life of the process.

options ─► ServerList ─► listener ─► ClientConnection … ─► drain
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from time import monotonic
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar, cast

from core_router.choice.budget import RetryBudget
from core_router.choice.hedging import Hedging
from core_router.choice.sequences import IDLE_S, Sequences
from core_router.combined import Combined
from core_router.http.client import ClientConnection
from core_router.http.upstream import ServerConnection
from core_router.operate.counts import Counts
from core_router.servers.listing import ServerList
from core_router.servers.table import ServerTable
from core_router.servers.tls import reason_of
from frontends.shared.tls import listening
from frontends.shared.watched_files import WatchedFiles

if TYPE_CHECKING:
    from core_router.grpc.port import GrpcPort
    from core_router.http.attempted_request import AttemptedRequest
    from core_router.http.heads import RequestHead
    from core_router.options import RouterOptions
    from core_router.servers.server import Server
    from core_router.targets import Target
    from frontends.shared.tls import Certificates

logger = logging.getLogger("core_router")

_T = TypeVar("_T")

_TICK_S = 1.0
# Servers close idle connections too, after 75 s in core; a request must not meet that.
_SERVER_IDLE_S = 20.0
_LOOKS_S = 0.25  # between two looks for models that are not known
_GOODBYE_S = 1.0  # in which idle clients of a draining router may still send a request


class PortInUse(Exception):
    """A port that cannot be opened."""

    def __init__(self, option: str, address: str, port: int, error: OSError):
        super().__init__(option, address, port, error)
        self.option, self.address, self.port, self.error = option, address, port, error


class Ports(NamedTuple):
    """Where a router listens. grpc: 0 without gRPC."""

    http: int
    grpc: int


class Router:
    """One router. Event loop only.

    now_s         time of the monotonic clock, at most a second old
    clients       open connections of clients over HTTP
    grpc          the port for gRPC; None without one
    ports         where it listens, after `open`
    hedging       when requests get a second copy; None for never
    files         those that are read again when they change: certificates
    kept_bytes    bodies that are kept for another attempt
    is_draining   whether it ends: each response is the last one of its connection
    """

    def __init__(self, options: RouterOptions):
        self.options = options
        self.limits = options.limits
        self.now_s = monotonic()
        self.clients: set[ClientConnection] = set()
        self.kept_bytes = 0
        self.is_draining = False
        self.table = ServerTable()
        self.table.shares = options.shares
        self.budget = RetryBudget()
        self.sequences = Sequences()
        self.hedging = (
            Hedging(options.hedge_quantile, options.hedge_share) if options.hedge_quantile else None
        )
        self.metrics = Counts()
        self.files = WatchedFiles(options.reload_s)
        self.servers = ServerList(self.table, options)
        self._combined = Combined(self.table, self.servers)
        self.ports = Ports(0, 0)
        self.grpc = _grpc_port(self) if options.grpc_port is not None else None
        self._listener: asyncio.AbstractServer | None = None
        self._tasks: set[asyncio.Task[Any]] = set()
        self._looked_s = 0.0

    # life -----------------------------------------------------------------

    async def open(self) -> Ports:
        """Find the servers and listen. Return the ports.

        Raises PortInUse, and CoreError(INVALID) for certificates that cannot be used.
        """
        loop = asyncio.get_running_loop()
        options = self.options
        self.servers.tls.watch(self.files)
        secure = self.listening(options.http_certificates, "http/1.1")
        # The ports first: a second router on them must not send checks.
        try:
            self._listener = await loop.create_server(
                lambda: cast(asyncio.Protocol, ClientConnection(self)),
                options.address,
                options.port,
                backlog=1024,
                reuse_port=options.reuse_port or None,
                start_serving=False,
                **secure,
            )
        except OSError as error:
            raise PortInUse("--http-port", options.address, options.port, error) from None
        grpc_port = 0
        if self.grpc is not None and (wanted := options.grpc_port) is not None:
            try:
                grpc_port = await self.grpc.open(
                    options.address, wanted, options.reuse_port, options.grpc_certificates
                )
            except OSError as error:
                raise PortInUse("--grpc-port", options.address, wanted, error) from None
        await self.servers.open(options.sources)
        for name in sorted(options.shares.servers() - self.table.servers.keys()):
            logger.warning("--share: no server %s; %s", name, self.table.status())
        await self._listener.start_serving()
        if self.grpc is not None:
            await self.grpc.start()
        self.run(self._tick())
        self.ports = Ports(self._listener.sockets[0].getsockname()[1], grpc_port)
        return self.ports

    def listening(self, certificates: Certificates | None, protocol: str) -> dict[str, Any]:
        """Return the TLS arguments of a listener; none without certificates.

        Raises CoreError(INVALID) if a file of the certificates cannot be used.
        """
        found = listening(certificates, protocol, self.files)
        # A client that never ends its handshake counts as no connection yet. asyncio refuses a timeout of 0.
        timeout_s = max(self.limits.client_s, _TICK_S)
        return {**found, "ssl_handshake_timeout": timeout_s} if found else found

    async def drain(self) -> None:
        """Answer requests in flight; accept no more."""
        self.is_draining = True
        await asyncio.sleep(self.options.drain_delay_s)
        if self._listener is not None:
            self._listener.close()
        if self.grpc is not None:
            self.grpc.announce_end()
        end_s = monotonic() + self.options.drain_s
        goodbye_s = monotonic() + min(_GOODBYE_S, self.options.drain_s)
        is_said = False
        while self._connections() and monotonic() < end_s:
            if monotonic() >= goodbye_s:
                for each in list(self.clients):
                    each.expire(self.now_s, 0.0, self.limits.client_s)
                if self.grpc is not None and not is_said:
                    self.grpc.announce_end()
                is_said = True
            await asyncio.sleep(0.02)
        if self._connections():
            logger.warning("%d connections were not answered in time", self._connections())

    def _connections(self) -> int:
        return len(self.clients) + (len(self.grpc.links) if self.grpc is not None else 0)

    async def close(self) -> None:
        """End all connections."""
        for client in list(self.clients):
            client.abort()
        if self.grpc is not None:
            self.grpc.close()
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self.servers.close()
        self.files.close()

    async def _tick(self) -> None:
        """Close what has waited for too long."""
        while True:
            await asyncio.sleep(_TICK_S)
            self.now_s = monotonic()
            for client in list(self.clients):
                client.expire(self.now_s, self.limits.idle_s, self.limits.client_s)
            for server in self.table.servers.values():
                server.close_idle(self.now_s - _SERVER_IDLE_S)
            if self.grpc is not None:
                self.grpc.tick(self.now_s)
            self.sequences.expire(self.now_s - IDLE_S)

    def run(self, work: Coroutine[Any, Any, _T]) -> asyncio.Task[_T]:
        """Run a coroutine in the background; `close` cancels it."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    # for connections ------------------------------------------------------

    def enter(self, client: ClientConnection) -> bool:
        """Add a connection of a client. Return False if there are too many."""
        self.clients.add(client)
        self.metrics.connections += 1
        return len(self.clients) <= self.limits.connections

    def connect(self, request: AttemptedRequest, server: Server) -> None:
        """Open a connection to a server for a request, which gets it or the error."""
        self.run(self._connect(request, server))

    async def _connect(self, request: AttemptedRequest, server: Server) -> None:
        loop = asyncio.get_running_loop()
        address = server.address
        made = ServerConnection(server)
        protocol = cast(asyncio.Protocol, made)
        opening = loop.create_connection(
            lambda: protocol, address.host, address.port, **self.servers.tls.to_http(address)
        )
        try:
            await asyncio.wait_for(opening, self.limits.connect_s)
        except asyncio.TimeoutError:
            request.not_connected(f"no connection in {self.limits.connect_s:g} s")
        except OSError as error:
            request.not_connected(f"no connection: {reason_of(error)}")
        else:
            request.connected(made)

    def may_retry(self, tried: int) -> bool:
        """Return whether a request that `tried` servers had may go to another, and take it off the budget."""
        return tried <= self.limits.retries and self.budget.take()

    def may_look(self) -> bool:
        """Return whether the servers may be asked for models that are not known: not too often."""
        return monotonic() - self._looked_s >= _LOOKS_S

    async def look_again(self) -> None:
        """Read the indexes of all servers."""
        self._looked_s = monotonic()
        await self.servers.look()

    async def answer_of_all(
        self, target: Target, head: RequestHead, body: bytes
    ) -> tuple[int, bytes]:
        """Send a request to all servers; return status and body of the combined answer."""
        return await self._combined.answer(target, head, body)


def _grpc_port(router: Router) -> GrpcPort | None:
    """Return a port for gRPC; None, with a line in the log, if this installation has none."""
    try:
        from core_router.grpc.port import GrpcPort
    except ModuleNotFoundError as error:
        if not (error.name or "").startswith("core_router.grpc."):
            raise
        logger.warning(
            "gRPC is not served: core-router was installed without libnghttp2-dev; "
            "install that, then core-router again, or start the router with --no-grpc"
        )
        return None
    return GrpcPort(router)
