"""GrpcPort: the port for clients over gRPC, and the connections to servers.

client ─► ClientLink ─► [GrpcPort.begin] ─► UnaryCall or InferStream ─► LinkPool ─► server
"""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import TYPE_CHECKING, Any, cast

from core_router.grpc.all_servers import AllServers
from core_router.grpc.arriving import Arriving
from core_router.grpc.infer_stream import InferStream
from core_router.grpc.methods import HEALTH, STREAM, purpose_of
from core_router.grpc.native.blocks import field
from core_router.grpc.native.link import ClientLink, Flusher, Receiver, ServerLink
from core_router.grpc.pool import LinkPool
from core_router.grpc.routed_call import RoutedCall
from core_router.grpc.statuses import INTERNAL
from core_router.grpc.turns import Turns
from core_router.grpc.unary import UnaryCall
from core_router.grpc.unread import Unread
from core_router.servers.tls import reason_of
from core_router.targets import Purpose

if TYPE_CHECKING:
    from core_router.router import Router
    from core_router.servers.server import Server
    from core_router.servers.table import Route
    from frontends.shared.tls import Certificates


class _ClientProtocol(ClientLink, asyncio.BufferedProtocol):
    """A ClientLink with the base class by which asyncio knows a protocol that reads into a buffer."""


class _ServerProtocol(ServerLink, asyncio.BufferedProtocol):
    """The same for a ServerLink."""


class GrpcPort:
    """One port. Event loop only.

    links     open connections of clients
    streams   open calls of ModelStreamInfer
    turns     of their messages
    arriving  calls whose message has not come as a whole
    unread    responses that clients do not read
    pools     those with connections, also of servers that are no longer in the list
    """

    def __init__(self, router: Router):
        self.router = router
        self.links: set[ClientLink] = set()
        self.streams: set[InferStream] = set()
        self.turns = Turns(lambda begin: asyncio.get_running_loop().call_soon(begin))
        self.arriving = Arriving()
        self.unread = Unread()
        self.pools: set[LinkPool] = set()
        self._flusher: Flusher
        self._listener: asyncio.AbstractServer | None = None
        self._all = AllServers(self)

    # life -----------------------------------------------------------------

    async def open(
        self, address: str, port: int, reuse_port: bool, certificates: Certificates | None
    ) -> int:
        """Bind the port, without accepting connections; return it.

        Raises OSError if it is in use, CoreError(INVALID) for certificates that cannot be used.
        """
        loop = asyncio.get_running_loop()
        self._flusher = Flusher(loop)
        self._listener = await loop.create_server(
            lambda: _ClientProtocol(self, self._flusher),
            address,
            port,
            backlog=1024,
            reuse_port=reuse_port or None,
            start_serving=False,
            **self.router.listening(certificates, "h2"),
        )
        found: int = self._listener.sockets[0].getsockname()[1]
        return found

    async def start(self) -> None:
        """Accept connections."""
        assert self._listener is not None
        await self._listener.start_serving()

    def announce_end(self) -> None:
        """Tell the clients to open no more calls here; a second time: refuse them."""
        if self._listener is not None:
            self._listener.close()
        for link in list(self.links):
            link.say_goodbye()
        for stream in list(self.streams):
            stream.end_when_idle()

    def close(self) -> None:
        """End all connections."""
        if self._listener is not None:
            self._listener.close()
        for link in list(self.links):
            link.abort()
        for pool in self.pools:
            pool.close()

    def tick(self, now_s: float) -> None:
        """Close what is idle for too long, once a second."""
        limits = self.router.limits
        for link in list(self.links):
            link.tick()
            if link.streams():
                link.active_s = now_s
            elif now_s - link.active_s >= limits.idle_s:
                link.say_goodbye()
        self.unread.tick(self.links, now_s, limits.client_s)
        self.arriving.expire(now_s, limits.client_s)
        for pool in list(self.pools):
            pool.tick(now_s)
            if pool.is_empty:
                self.pools.discard(pool)

    # for links ------------------------------------------------------------

    @property
    def now_s(self) -> float:
        """Time of the router's clock."""
        return self.router.now_s

    def enter(self, link: ClientLink) -> bool:
        """Add a connection of a client. Return False if there are too many."""
        self.links.add(link)
        self.router.metrics.connections += 1
        return len(self.links) <= self.router.limits.connections

    def leave(self, link: ClientLink) -> None:
        """Remove a connection of a client."""
        self.links.discard(link)

    def begin(self, link: ClientLink, id: int, head: bytes) -> Receiver:
        """Return what gets the news of a new call. head: its block."""
        path = field(head, b":path") or b""
        if path == STREAM:
            return InferStream(self, link, id, head)
        return UnaryCall(self, link, id, head, purpose_of(path))

    # for calls ------------------------------------------------------------

    def pool_of(self, server: Server) -> LinkPool:
        """Return the connections to a server."""
        if server.links is None:
            server.links = LinkPool(server, self)
        return server.links

    def connect(self, pool: LinkPool) -> None:
        """Open another connection of a pool, which gets it or the error."""
        self.pools.add(pool)
        self.router.run(self._connect(pool))

    async def _connect(self, pool: LinkPool) -> None:
        limit_s = self.router.limits.connect_s
        address = pool.server.address
        opening = asyncio.get_running_loop().create_connection(
            lambda: _ServerProtocol(pool.server, pool, self._flusher),
            address.host,
            address.grpc_port,
            **self.router.servers.tls.to_grpc(address),
        )
        try:
            _, link = await asyncio.wait_for(opening, limit_s)
        except asyncio.TimeoutError:
            pool.not_opened(f"no connection to port {address.grpc_port} in {limit_s:g} s")
        except OSError as error:
            pool.not_opened(f"no connection to port {address.grpc_port}: {reason_of(error)}")
        else:
            pool.opened(cast(ServerLink, link))

    def answer(self, call: RoutedCall, purpose: Purpose, model: str, data: bytes) -> Any:
        """Answer a call that no single server answers. Return the task that does, if there is one.

        data   the message of the client, with its prefix
        """
        if purpose is Purpose.LIVE:
            call.answer(b"\x08\x01")
        elif purpose is Purpose.READY:
            is_ready = self.router.table.is_ready() and not self.router.is_draining
            if field(call.head, b":path") == HEALTH:
                call.answer(b"\x08\x01" if is_ready else b"\x08\x02")
            else:
                call.answer(b"\x08\x01" if is_ready else b"")
        else:
            return self.task(call, self._all.answer(call, purpose, model, data))
        return None

    def look_and_forward(self, call: RoutedCall, route: Route) -> Any:
        """Forward a call for a model that no server had, when the servers were asked again.

        Return the task that does.
        """
        return self.task(call, self._look_and_forward(call, route))

    async def _look_and_forward(self, call: RoutedCall, route: Route) -> None:
        await self.router.look_again()
        target = route.target
        call.forward(self.router.table.for_model(target.purpose, target.model, target.version))

    def task(self, call: RoutedCall | InferStream, work: Coroutine[Any, Any, None]) -> Any:
        """Run a part of a call in the background; its error ends the call. Return the task."""

        async def run() -> None:
            try:
                await work
            except Exception as error:
                call.fail(INTERNAL, f"the router failed: {type(error).__name__}; see its log")
                raise

        return self.router.run(run())
