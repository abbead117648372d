"""The list of servers, as the addresses of its sources change. No server answers."""

import asyncio
import socket

import pytest
from core_router.choice.sequences import SequenceParameters, Sequences
from core_router.options import RouterOptions
from core_router.servers import listing as listing_module
from core_router.servers.addresses import read_servers
from core_router.servers.listing import ServerList
from core_router.servers.server import Address, State, TlsPorts
from core_router.servers.source import AddressSource
from core_router.servers.table import Route, ServerTable
from core_router.targets import Purpose, Target

PLAIN = Address("127.0.0.1", 1, 2)
WITH_METRICS = Address("127.0.0.1", 1, 2, 3)


class Source(AddressSource):
    """A source whose addresses a test changes; an exception is raised."""

    def __init__(self, *now):
        self.now = list(now)

    async def addresses(self):
        for each in self.now:
            if isinstance(each, Exception):
                raise each
        return self.now


class Listing:
    """A list of servers with the addresses that it has at the moment."""

    def __init__(self, *sources):
        self.table = ServerTable()
        self.options = RouterOptions(sources=sources, resolve_s=0.01)
        self.list = ServerList(self.table, self.options)

    async def becomes(self, *addresses):
        for _ in range(500):
            if self.now() == sorted(addresses):
                return
            await asyncio.sleep(0.005)
        assert self.now() == sorted(addresses)

    def now(self):
        return sorted(each.address for each in self.table.servers.values())

    def server(self):
        (found,) = self.table.servers.values()
        return found

    async def __aenter__(self):
        await self.list.open(self.options.sources)
        return self

    async def __aexit__(self, *error):
        await self.list.close()


def run(test, *sources):
    async def within():
        async with Listing(*sources) as listing:
            await test(listing)

    asyncio.run(within())


@pytest.mark.parametrize(
    "other",
    [WITH_METRICS, Address("127.0.0.1", 1, 9), Address("127.0.0.1", 1, 2, 0, TlsPorts(grpc=True))],
)
def test_a_server_with_another_port_or_tls_stays_in_the_list(other):
    source = Source(PLAIN)

    async def test(listing):
        source.now = [other]
        await listing.becomes(other)
        source.now = []
        await listing.becomes()

    run(test, source)


def test_a_server_of_two_sources_has_its_first_address():
    first, second = Source(PLAIN), Source(WITH_METRICS)

    async def test(listing):
        assert listing.now() == [PLAIN]
        first.now = []
        await listing.becomes(WITH_METRICS)
        first.now = [PLAIN]
        await listing.becomes(PLAIN)
        first.now, second.now = [], []
        await listing.becomes()

    run(test, first, second)


def test_a_defect_of_a_source_does_not_end_the_changes(caplog):
    source = Source(PLAIN)

    async def test(listing):
        source.now = [ValueError("a defect")]
        await asyncio.sleep(0.1)
        source.now = [WITH_METRICS]
        await listing.becomes(WITH_METRICS)

    run(test, source)
    assert "the list of servers stays as it was" in caplog.text


class NameServer:
    """In place of socket.getaddrinfo: answers for the name `models` as a test says.

    now     addresses, each twice, as the system's own may answer; an exception is raised
    asked   how often
    """

    def __init__(self, *now):
        self.now = now
        self.asked = 0
        self._others = socket.getaddrinfo

    def __call__(self, host, port, *arguments, **more):
        if host != "models":
            return self._others(host, port, *arguments, **more)
        self.asked += 1
        if isinstance(self.now, Exception):
            raise self.now
        found = [self._others(each, port, type=socket.SOCK_STREAM)[0] for each in self.now]
        return found * 2


def test_the_servers_of_a_name_are_those_that_dns_has(monkeypatch):
    dns = NameServer("127.0.0.1", "127.0.0.2")
    monkeypatch.setattr(socket, "getaddrinfo", dns)
    first, second, third = (Address(f"127.0.0.{host}", 1, 2, 3) for host in (1, 2, 3))

    async def test(listing):
        assert listing.now() == [first, second]
        stays = listing.table.servers[str(second)]
        dns.now = ("127.0.0.3", "127.0.0.2")
        await listing.becomes(second, third)
        assert listing.table.servers[str(second)] is stays

    run(test, *read_servers("dns://models:1:2:3"))


def test_a_name_server_that_fails_changes_nothing(monkeypatch, caplog):
    dns = NameServer("127.0.0.1", "127.0.0.2")
    monkeypatch.setattr(socket, "getaddrinfo", dns)
    first, second, third = (Address(f"127.0.0.{host}", 1, 2, 3) for host in (1, 2, 3))

    async def fails(listing, error):
        before = dict(listing.table.servers)
        dns.now, asked = error, dns.asked
        for _ in range(500):
            if dns.asked >= asked + 4:
                break
            await asyncio.sleep(0.005)
        assert dns.asked >= asked + 4
        assert listing.table.servers == before

    async def test(listing):
        await fails(listing, socket.gaierror(socket.EAI_AGAIN, "no answer in time"))
        assert listing.now() == [first, second]
        dns.now = ("127.0.0.3",)
        await listing.becomes(third)
        await fails(listing, socket.gaierror(socket.EAI_NONAME, "no such name"))

    run(test, *read_servers("dns://models:1:2:3"))
    said = "dns://models:1: {}; its servers stay as they were"
    assert caplog.text.count(said.format("no answer in time")) == 1
    assert caplog.text.count(said.format("no such name")) == 1


def test_a_drained_server_that_comes_back_is_drained(caplog):
    source = Source(PLAIN)

    async def test(listing):
        listing.server().is_drained = True
        source.now = []
        await listing.becomes()
        source.now = [PLAIN]
        await listing.becomes(PLAIN)
        assert listing.server().is_drained
        listing.server().is_drained = False
        source.now = [WITH_METRICS]
        await listing.becomes(WITH_METRICS)
        assert not listing.server().is_drained

    run(test, source)
    assert caplog.text.count("server 127.0.0.1:1 is back in the list, and still drained") == 1


@pytest.mark.parametrize("is_start", [True, False])
def test_the_sequences_of_a_server_end_when_another_takes_its_place(is_start):
    source = Source(PLAIN)

    async def test(listing):
        sequences, server = Sequences(), listing.server()
        server.state = State.READY
        route = Route(Target(Purpose.INFERENCE, "m"), (server.any_model,), True, True)
        first, later = (SequenceParameters(7, each, False) for each in (is_start, False))
        assert sequences.choose(route, first, (), 0.0) is server.any_model
        source.now = []
        await listing.becomes()
        assert sequences.choose(route, later, (), 0.0) is server.any_model  # it may still answer
        source.now = [PLAIN]
        await listing.becomes(PLAIN)

        assert sequences.choose(route, later, (), 0.0) is None
        assert "which has ended since" in sequences.failure(route, later)

    run(test, source)


def test_few_of_the_servers_that_have_left_are_kept(monkeypatch):
    monkeypatch.setattr(listing_module, "_MOST_FORMER", 2)
    source = Source()

    async def test(listing):
        for port in range(1, 5):
            source.now = [Address("127.0.0.1", port)]
            await listing.becomes(*source.now)
        assert list(listing.list._former) == ["127.0.0.1:2", "127.0.0.1:3"]

    run(test, source)


def test_the_metrics_of_a_server_that_has_left_are_not_kept():
    source = Source(PLAIN)

    async def test(listing):
        server = listing.server()
        server.metrics = b"# TYPE n counter\nn 5\n"
        for _ in listing.list.metrics.join(server.name, b"# TYPE n counter\nn 2\n"):
            pass
        source.now = []
        await listing.becomes()

        assert server.metrics == b""
        assert b"n 3" in b"".join(listing.list.metrics.text())

    run(test, source)
