"""gzip and deflate, against Python's own."""

import gzip
import random
import tracemalloc
import zlib

import pytest
from hypothesis import given
from hypothesis import strategies as st

from core.errors import CoreError, MemoryExhausted
from frontends.http.codec import compression

PACK = {"gzip": gzip.compress, "deflate": zlib.compress}
UNPACK = {"gzip": gzip.decompress, "deflate": zlib.decompress}


def unpacked(data, encoding="gzip", most=2**30):
    unpacking = compression.Unpacking(data, encoding, most)
    assert unpacking.go_on(most)
    return bytes(unpacking.plain)


@given(st.sampled_from(sorted(PACK)), st.sampled_from(sorted(PACK)), st.binary())
def test_compressed_data_is_decompressed_whatever_its_name(packed, called, data):
    assert unpacked(PACK[packed](data), called) == data


@given(st.sampled_from(sorted(PACK)), st.binary())
def test_responses_can_be_unpacked_by_others(encoding, data):
    assert UNPACK[encoding](compression.compress(data, encoding)) == data


def test_large_data_is_unpacked_in_pieces():
    data = bytes(range(256)) * 20_000
    assert unpacked(gzip.compress(data)) == data
    assert unpacked(gzip.compress(data, 0)) == data


@pytest.mark.parametrize("size", [0, 1, 1000, 300_000])
def test_the_limit_is_exact(size):
    assert len(unpacked(gzip.compress(bytes(size)), most=size)) == size
    if size:
        with pytest.raises(CoreError, match=f"maximum allowed value of {size - 1} bytes"):
            unpacked(gzip.compress(bytes(size)), most=size - 1)


def test_a_bomb_takes_no_more_memory_than_the_limit():
    bomb = gzip.compress(bytes(200 * 2**20))
    tracemalloc.start()

    with pytest.raises(CoreError):
        unpacked(bomb, most=2**20)

    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert peak < 4 * 2**20


@pytest.mark.parametrize("cut", [1, 5, 12, 30])
def test_truncated_data_is_refused(cut):
    with pytest.raises(CoreError, match="ends early"):
        unpacked(gzip.compress(b"a" * 100 + bytes(range(100)))[:cut])


def test_noise_is_refused():
    with pytest.raises(CoreError, match="failed to decompress the gzip request body"):
        unpacked(b"no gzip at all")


def test_damaged_data_is_refused():
    data = bytearray(gzip.compress(bytes(range(100))))
    data[-6] ^= 1
    with pytest.raises(CoreError):
        unpacked(bytes(data))


def test_data_after_the_end_is_ignored():
    assert unpacked(gzip.compress(b"data") + b"more") == b"data"


def test_empty_data_cannot_be_decompressed():
    with pytest.raises(CoreError, match="nothing to be decompressed"):
        compression.Unpacking(b"", "gzip", 10)


@pytest.mark.parametrize("encoding", [None, "identity"])
def test_plain_data_needs_no_unpacking(encoding):
    assert compression.known(encoding)


@pytest.mark.parametrize("encoding", ["br", "", "GZIP", "gzip, deflate"])
def test_other_encodings_are_not_known(encoding):
    assert not compression.known(encoding)


@pytest.mark.parametrize(
    "header,expected",
    [
        (None, "identity"),
        ("", "identity"),
        ("gzip", "gzip"),
        ("deflate", "deflate"),
        ("deflate, gzip", "deflate"),
        ("gzip;q=0.5, deflate", "deflate"),
        ("gzip;q=0", "identity"),
        ("*", "identity"),
        ("gzip;q=0.5,identity;q=0.8", "identity"),
        ("gzip;q=abc", "identity"),
        ("br", "identity"),
        ("x,gzip;q=1", "gzip"),
        (" gzip ;q=0.3, deflate;q=0.7", "deflate"),
        ("gzip;q=nan", "identity"),
        ("gzip;;;=,,", "identity"),
    ],
)
def test_the_highest_weight_decides_the_encoding(header, expected):
    assert compression.accepted(header) == expected


# Accounted bytes -----------------------------------------------------------------------


async def borrowed(data, most=2**30):
    """The plain form, and what was borrowed for it."""
    taken = []
    unpacking = compression.Unpacking(data, "gzip", most)
    if unpacking.at_once():
        return unpacking.plain, taken
    return await unpacking.rest(taken.append), taken


async def test_a_body_pays_for_a_multiple_of_its_size_and_some_megabytes():
    for size in (64 * 1024, 64 * 1024 + 1, compression.FREE_BYTES):
        plain, taken = await borrowed(gzip.compress(bytes(size)))
        assert (len(plain), taken) == (size, [])

    noise = random.Random(1).randbytes(600_000)
    packed = gzip.compress(b"".join(noise[i : i + 1] * 12 for i in range(len(noise))), 1)
    plain, taken = await borrowed(packed)
    assert len(plain) == 12 * len(noise) and taken == []


async def test_bytes_beyond_the_ratio_are_taken_before_they_are_made():
    data = bytes(20 * 2**20)
    packed = gzip.compress(data)
    free = compression.FREE_RATIO * len(packed) + compression.FREE_BYTES

    plain, taken = await borrowed(packed)

    assert plain == data
    assert len(data) <= free + sum(taken) < 1.2 * len(data)
    *steps, last = (await borrowed(packed, len(data)))[1]
    assert steps == taken[:-1] and free + sum(steps) + last == len(data)


async def test_bytes_beyond_the_account_are_not_made():
    packed = gzip.compress(bytes(200 * 2**20))
    unpacking = compression.Unpacking(packed, "gzip", 2**30)

    def refuse(size):
        raise MemoryExhausted("no room")

    with pytest.raises(MemoryExhausted):
        await unpacking.rest(refuse)

    free = compression.FREE_RATIO * len(packed) + compression.FREE_BYTES
    assert unpacking.size <= free


async def test_the_limit_is_exact_where_much_is_unpacked():
    packed = gzip.compress(bytes(10 * 2**20))

    assert len((await borrowed(packed, 10 * 2**20))[0]) == 10 * 2**20
    with pytest.raises(CoreError, match=f"maximum allowed value of {10 * 2**20 - 1} bytes"):
        await borrowed(packed, 10 * 2**20 - 1)
