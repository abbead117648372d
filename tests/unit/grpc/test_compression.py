"""Limits of the decompressed size of a message, and the bytes that the call accounts for meanwhile."""

import gzip
import os
import tracemalloc
import zlib

import pytest

from core.errors import MemoryExhausted
from frontends.grpc.compression import PAID_BYTES, PAID_RATIO, Unreadable, unpack
from frontends.grpc.status import Code

MB = 2**20
GZIP, DEFLATE = 1, 2


class MessageMemory:
    """Counts held bytes. `most` and `most_unpaid` are its limits."""

    def __init__(self, most=2**40, most_unpaid=2**40):
        self.held = self.unpaid = self.largest = 0
        self._most, self._most_unpaid = most, most_unpaid

    def hold(self, size, what):
        if self.held + size > self._most:
            raise MemoryExhausted(what)
        self.held += size
        self.largest = max(self.largest, self.held)

    def release(self, size):
        self.held -= size

    def hold_unpaid(self, size, what):
        if self.unpaid + size > self._most_unpaid:
            raise MemoryExhausted(what)
        self.unpaid += size

    def release_unpaid(self, size):
        self.unpaid -= size


@pytest.mark.parametrize("size", [0, 1, PAID_BYTES, PAID_BYTES + 1, 5 * MB, 40 * MB])
@pytest.mark.parametrize(("encoding", "pack"), [(GZIP, gzip.compress), (DEFLATE, zlib.compress)])
async def test_a_message_comes_back_and_is_held(size, encoding, pack):
    message, ledger = bytes(size), MessageMemory()
    packed = pack(message)

    assert await unpack(packed, encoding, 2**31, ledger) == message
    assert ledger.held == size
    assert ledger.unpaid == max(0, size - PAID_BYTES - PAID_RATIO * len(packed))


async def test_random_bytes_are_paid_for():
    message, ledger = os.urandom(3 * MB), MessageMemory(most_unpaid=0)

    assert await unpack(gzip.compress(message), GZIP, 2**31, ledger) == message


async def test_decompression_stops_at_the_limit():
    ledger = MessageMemory(most_unpaid=8 * MB)

    with pytest.raises(MemoryExhausted):
        await unpack(gzip.compress(bytes(100 * MB)), GZIP, 2**31, ledger)

    assert ledger.largest < 16 * MB


async def test_unpacking_ends_where_there_is_no_memory():
    message = b"".join(b"%08d" % number for number in range(2**20))

    with pytest.raises(MemoryExhausted):
        await unpack(gzip.compress(message), GZIP, 2**31, MessageMemory(most=4 * MB))


@pytest.mark.parametrize("ledger", [MessageMemory(most=8 * MB), MessageMemory(most_unpaid=8 * MB)])
async def test_a_kept_error_holds_no_decompressed_data(ledger):
    packed = gzip.compress(bytes(20 * MB))
    tracemalloc.start()
    try:
        with pytest.raises(MemoryExhausted) as kept:
            await unpack(packed, GZIP, 2**31, ledger)
        assert tracemalloc.get_traced_memory()[1] > 4 * MB
        assert tracemalloc.get_traced_memory()[0] < MB
    finally:
        tracemalloc.stop()
    assert kept.value.__traceback__ is not None


@pytest.mark.parametrize("most", [100, PAID_BYTES, 2 * MB])
async def test_the_largest_message_is_a_bound_too(most):
    assert await unpack(gzip.compress(bytes(most)), GZIP, most, MessageMemory()) == bytes(most)
    with pytest.raises(Unreadable) as error:
        await unpack(gzip.compress(bytes(most + 1)), GZIP, most, MessageMemory())
    assert error.value.code is Code.RESOURCE_EXHAUSTED


@pytest.mark.parametrize("size", [10, 3 * MB])
@pytest.mark.parametrize(
    "broken",
    [lambda packed: packed[:-4], lambda packed: packed + b"x", lambda packed: b"x" + packed],
)
async def test_invalid_compressed_data_is_refused(size, broken):
    packed = broken(gzip.compress(os.urandom(size)))

    with pytest.raises(Unreadable) as error:
        await unpack(packed, GZIP, 2**31, MessageMemory())

    assert error.value.code is Code.INTERNAL
