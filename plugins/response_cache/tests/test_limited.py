"""A local cache with an age, a largest size and shares of callers."""

import random

import numpy as np
import pytest
from core_response_cache.limited import LimitedCache
from core_response_cache.settings import LocalSettings

from core.request import InferenceRequest
from core.tensor import Tensor

from .conftest import outputs

ENTRY = 100 + 512  # bytes of an entry with 100 bytes of tensors


class Clock:
    now_s = 1000.0

    def __call__(self):
        return self.now_s


@pytest.fixture
def clock():
    return Clock()


def cache_of(entries, clock=None, **settings):
    """Return a cache with room for a number of entries."""
    return LimitedCache(LocalSettings(entries * ENTRY, **settings), clock or Clock())


def request_of(caller):
    request = InferenceRequest("m", {})
    request.caller = caller
    return request


def insert(cache, key, caller=0, size=100):
    cache.insert_for(request_of(caller), key, outputs(size))


def find(cache, key):
    found = []
    cache.ask(key, found.append)
    return found[0]


def kept(cache, keys):
    """Return those keys that are stored. Does not count as a use."""
    return [key for key in keys if key in cache._entries]


def test_an_entry_is_used_until_its_age(clock):
    cache = cache_of(9, clock, ttl_s=10)
    insert(cache, b"a")

    clock.now_s += 9.9
    assert find(cache, b"a") is not None
    clock.now_s += 0.2  # a use makes it no younger
    assert find(cache, b"a") is None
    assert (len(cache), cache.used, cache.counters.evictions) == (0, 0, 0)
    assert (cache.counters.lookups, cache.counters.hits) == (2, 1)

    insert(cache, b"a")
    assert find(cache, b"a") is not None


def test_what_is_too_old_makes_room_before_anything_else(clock):
    cache = cache_of(2, clock, ttl_s=10)
    insert(cache, b"a")
    clock.now_s += 6
    insert(cache, b"b")
    find(cache, b"a")  # used last
    clock.now_s += 5

    insert(cache, b"c")

    assert kept(cache, [b"a", b"b", b"c"]) == [b"b", b"c"]
    clock.now_s += 50
    assert cache.fill() == (0, 0.0)


def test_a_larger_response_is_not_stored():
    cache = cache_of(9, largest=100)

    insert(cache, b"a", size=100)
    insert(cache, b"b", size=101)

    assert kept(cache, [b"a", b"b"]) == [b"a"]
    assert cache.may_hold(100) and not cache.may_hold(101)


def test_without_shares_the_least_recently_used_is_evicted_whoever_stored_it():
    cache = cache_of(3)
    for caller, key in [(1, b"a"), (2, b"b"), (1, b"c")]:
        insert(cache, key, caller)
    find(cache, b"a")

    insert(cache, b"d", 1)

    assert kept(cache, [b"a", b"b", b"c", b"d"]) == [b"a", b"c", b"d"]
    assert cache.counters.evictions == 1


def test_a_caller_that_floods_evicts_its_own_entries():
    cache = cache_of(8, share=0.25)
    quiet = [b"a", b"b"]
    for key in quiet:
        insert(cache, key, caller=1)

    for number in range(100):
        insert(cache, b"flood %d" % number, caller=2)

    assert kept(cache, quiet) == quiet
    assert len(cache) == 8  # the room that nobody needs is used
    assert find(cache, b"flood 99") is not None


def test_who_is_within_its_share_gets_room_from_who_is_above():
    cache = cache_of(8, share=0.25)
    for number in range(8):
        insert(cache, b"flood %d" % number, caller=2)

    for key in [b"a", b"b", b"c"]:
        insert(cache, key, caller=1)

    # Caller 1 has its share with two; for the third it gives up its own first.
    assert kept(cache, [b"a", b"b", b"c"]) == [b"b", b"c"]
    assert kept(cache, [b"flood 0", b"flood 1", b"flood 2"]) == [b"flood 2"]


def test_an_entry_of_more_than_a_share_is_not_stored():
    cache = cache_of(8, share=0.25)

    insert(cache, b"a", size=2 * ENTRY)

    assert len(cache) == 0


def test_a_step_of_an_ensemble_stores_for_the_caller_of_the_whole():
    cache, step = cache_of(8, share=0.25), request_of(0)
    step.parent = request_of(7)

    cache.insert_for(step, b"a", outputs(100))

    assert list(cache._owners) == [7]


def test_entries_are_copies():
    cache, array = cache_of(2), np.zeros(4, np.uint8)
    cache.insert(b"a", [Tensor.of("y", array)])

    array[:] = 7

    assert find(cache, b"a")[0].array.tolist() == [0, 0, 0, 0]


@pytest.mark.parametrize("share", [0.1, 0.3, 1.0])
def test_any_use_keeps_the_bounds(clock, share):
    chance, cache = random.Random(1), cache_of(20, clock, share=share, ttl_s=30)
    for _ in range(3000):
        clock.now_s += chance.random()
        key = chance.randrange(200).to_bytes(2, "big")
        if chance.random() < 0.5:
            find(cache, key)
        else:
            insert(cache, key, chance.randrange(5), chance.randrange(300))
        used = {owner.caller: owner.used for owner in cache._owners.values()}
        assert cache.used == sum(used.values()) == sum(e.size for e in cache._entries.values())
        assert cache.used <= cache.settings.size and all(used.values())
        above = {caller for caller in used if used[caller] > cache.settings.size * share}
        assert {owner.caller for owner in cache._above} == above


def test_while_one_is_above_its_share_the_others_lose_nothing():
    chance, cache = random.Random(1), cache_of(20, share=0.3)
    checked = 0
    for _ in range(3000):
        key, caller = chance.randrange(200).to_bytes(2, "big"), chance.choice([1, 1, 1, 2, 3])
        quiet = {
            key: owner
            for owner in cache._owners.values()
            for key in owner.entries
            if cache._above and owner not in cache._above and owner.caller != caller
        }
        checked += bool(quiet)
        insert(cache, key, caller, chance.randrange(90))
        assert all(key in cache._entries for key in quiet)
    assert checked > 500
