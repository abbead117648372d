"""ServerList: the servers of all sources, each with its watch and its load reports.

AddressSource ─► [ServerList] ─► Server, Watch, LoadReports ─► ServerTable
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from contextlib import AbstractAsyncContextManager, suppress
from time import time
from typing import TYPE_CHECKING

import aiohttp
from yarl import URL

from core_router.operate.server_metrics import ServerMetrics
from core_router.options import RouterOptions
from core_router.servers.announcements import Announcements
from core_router.servers.left_models import LeftModels
from core_router.servers.load_reports import LoadReports
from core_router.servers.server import Address, Server
from core_router.servers.source import AddressSource
from core_router.servers.table import ServerTable
from core_router.servers.tls import ServerTls
from core_router.servers.watch import Watch

if TYPE_CHECKING:
    from core_router.http.heads import RequestHead

logger = logging.getLogger("core_router")

_MOST_FORMER = 1000
# A load may take minutes; a server that cannot be reached says so at once.
_TIMEOUT = aiohttp.ClientTimeout(total=None, sock_connect=5)
_NOT_PASSED_ON = {"content-length", "transfer-encoding", "host", "accept-encoding"}


class ServerList:
    """Asks the sources for addresses, again and again. Event loop only.

    metrics   those of all servers as one's
    left      what this router has counted for servers and models that have left
    tls       of all connections to servers
    """

    def __init__(self, table: ServerTable, options: RouterOptions):
        """Raise CoreError(INVALID) for certificates that cannot be used."""
        self._table = table
        self._options = options
        self.metrics = ServerMetrics()
        self.left = LeftModels()
        self.tls = ServerTls(options.server_certificates)
        self._session: aiohttp.ClientSession | None = None
        self._tasks: dict[Address, list[asyncio.Task[None]]] = {}
        self._watches: dict[Address, Watch] = {}
        self._known: dict[str, list[Address]] = {}  # by source, as it has said last
        self._former: dict[str, Server] = {}  # by name, the last that have left
        self._errors: dict[str, str] = {}  # by source, the last one in the log
        self._resolving: list[asyncio.Task[None]] = []
        self._asks_now = asyncio.Event()  # set when a source has other addresses

    @property
    def session(self) -> aiohttp.ClientSession:
        """Sends requests of the router's own to servers."""
        assert self._session is not None
        return self._session

    async def open(self, sources: Sequence[AddressSource]) -> None:
        """Find and check the servers once; then go on in the background."""
        self._session = aiohttp.ClientSession(
            connector=aiohttp.TCPConnector(limit=0, keepalive_timeout=15), auto_decompress=False
        )
        await self._resolve(sources)
        looks = [each.look() for each in self._watches.values()]
        await asyncio.gather(*looks)
        loop = asyncio.get_running_loop()
        self._resolving = [
            loop.create_task(self._go_on(sources)),
            *(loop.create_task(self._watch(each)) for each in sources),
        ]

    def since_s(self, server: Server) -> float:
        """Return since when a server of the list has its state, in seconds since 1970."""
        return self._watches[server.address].since_s

    def announces(self, server: Server) -> bool:
        """Return whether a server of the list announces changes of its models."""
        return self._watches[server.address].announces

    def set_drained(self, server: Server, is_drained: bool) -> None:
        """Take a server out, or back in; requests in flight and open sequences are not touched."""
        if server.is_drained != is_drained:
            server.is_drained = is_drained
            self._watches[server.address].since_s = time()
            self._table.changed()

    def send(
        self, server: Server, head: RequestHead, body: bytes
    ) -> AbstractAsyncContextManager[aiohttp.ClientResponse]:
        """Send a request of a client or an operator to one server, with its headers.

        Raises aiohttp.ClientError, OSError or TimeoutError if there is no response.
        """
        return self.session.request(
            head.method.decode(),
            URL(f"{server.address.url}{head.target.decode('latin-1')}", encoded=True),
            data=body or None,
            headers=_fields(head.passed_on),
            timeout=_TIMEOUT,
            allow_redirects=False,
            skip_auto_headers=("Accept-Encoding",),  # who reads the response expects it as it is
            **self.tls.to_http(server.address),
        )

    async def look(self) -> None:
        """Check all servers that are not down, and wait for the results."""
        there = {each.address for each in self._table.in_use()}
        looks = [watch.look() for address, watch in self._watches.items() if address in there]
        await asyncio.gather(*looks)

    async def close(self) -> None:
        """End the checks, and the connections to the servers."""
        tasks = [task for each in self._tasks.values() for task in each]
        tasks += self._resolving
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        for server in self._table.servers.values():
            server.close()
        if self._session is not None:
            await self._session.close()

    async def _go_on(self, sources: Sequence[AddressSource]) -> None:
        while True:
            with suppress(asyncio.TimeoutError):
                await asyncio.wait_for(self._asks_now.wait(), self._options.resolve_s)
            self._asks_now.clear()
            try:
                await self._resolve(sources)
            except Exception:  # a defect must not end the changes of the list
                logger.exception("the list of servers stays as it was; the router asks again")

    async def _watch(self, source: AddressSource) -> None:
        while True:
            try:
                await source.watch(self._asks_now.set)
                return
            except Exception:  # a defect must not end the watch
                logger.exception("%s cannot be watched", source)
                await asyncio.sleep(self._options.resolve_s)

    async def _resolve(self, sources: Sequence[AddressSource]) -> None:
        """Ask the sources. One that fails keeps its servers: a name server that is away ends no server."""
        for source in sources:
            try:
                self._known[str(source)] = await source.addresses()
                self._errors.pop(str(source), None)
            except OSError as error:
                text = error.strerror or str(error)
                if text != self._errors.get(str(source)):
                    self._errors[str(source)] = text
                    logger.warning("%s: %s; its servers stay as they were", source, text)
        self._take(sources)

    def _take(self, sources: Sequence[AddressSource]) -> None:
        """Make the servers those of the addresses that are known. A server has one address: its first."""
        by_name: dict[str, Address] = {}
        for source in sources:
            for address in self._known.get(str(source), ()):
                by_name.setdefault(str(address), address)
        wanted = set(by_name.values())
        # First those that leave: one with other ports or TLS has the name of the one that takes its place.
        for address in self._tasks.keys() - wanted:
            self._remove(address)
        for address in wanted - self._tasks.keys():
            self._add(address)

    def _add(self, address: Address) -> None:
        server = Server(address)
        self._follow(server)
        self.left.go_on(server.any_model)
        self._table.servers[server.name] = server
        options = self._options
        arguments = {"headers": options.headers, **self.tls.to_http(address)}
        watch = Watch(
            server,
            self._table,
            self.session,
            options.check_s,
            options.check_timeout_s,
            options.check_failures,
            arguments,
            self.left,
        )
        self._watches[address] = watch
        announcements = Announcements(watch, self.session, options.check_s, arguments)
        works = [watch.run(), announcements.run()]
        if address.metrics_port:
            reports = LoadReports(
                server,
                self.metrics,
                self.session,
                options.check_s,
                options.check_timeout_s,
                options.headers,
                self.tls,
            )
            works.append(reports.run())
        self._tasks[address] = [asyncio.get_running_loop().create_task(each) for each in works]
        self._table.changed()

    def _follow(self, server: Server) -> None:
        """Have a server take the place of the one that left with its name."""
        former = self._former.pop(server.name, None)
        if former is None:
            return
        former.downs += 1  # its sequences have ended: this may be another process
        server.is_drained = former.is_drained
        if server.is_drained:
            logger.warning("server %s is back in the list, and still drained", server.name)

    def _remove(self, address: Address) -> None:
        """Take a server out of the list; its requests in flight go on."""
        for task in self._tasks.pop(address):
            task.cancel()
        del self._watches[address]
        server = self._table.servers.pop(str(address))
        server.is_removed = True
        self._former[server.name] = server
        if len(self._former) > _MOST_FORMER:
            del self._former[next(iter(self._former))]
        self.metrics.leave(server.name, server.metrics)
        server.metrics = b""  # the counts of its models keep the object
        for model in (server.any_model, *server.models.values()):
            self.left.keep(model)
        server.close_idle(float("inf"))
        self._table.changed()
        logger.info("server %s is no longer in the list", server.name)


def _fields(head: bytes) -> list[tuple[str, str]]:
    """Return the fields of a request that a server needs."""
    found = []
    for line in head.split(b"\r\n")[1:-2]:
        name, _, value = line.decode("latin-1").partition(":")
        if name.lower() not in _NOT_PASSED_ON:
            found.append((name, value.strip()))
    return found
