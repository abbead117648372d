"""The list of servers, as the addresses of its sources change. No server answers."""

import asyncio

import pytest
from core_router.options import RouterOptions
from core_router.servers.listing import ServerList
from core_router.servers.server import Address, TlsPorts
from core_router.servers.source import AddressSource
from core_router.servers.table import ServerTable

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
