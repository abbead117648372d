"""Equal requests that come together run once."""

import asyncio

import numpy as np
import pytest
from core_response_cache.coalescing import Coalescing
from core_response_cache.limited import LimitedCache
from core_response_cache.settings import LocalSettings

from core.caches import Cache, LocalCache
from core.errors import CoreError
from core.pipeline import cache as pipeline_cache
from frontends.shared.deadline import infer_with_deadline

from .conftest import values


@pytest.fixture
def cache():
    return Coalescing(LocalCache(1 << 20))


async def running(served, count=1):
    """Wait until so many executions have begun."""
    while len(served.executed) < count:
        await asyncio.sleep(0.001)


async def test_equal_requests_share_one_execution(serve, cache):
    served = await serve(cache)
    served.gate.clear()
    replies = [served.ask(1, id=str(number)) for number in range(5)]
    await running(served)
    replies += [served.ask(1), served.ask(2)]
    served.gate.set()

    assert await values(*replies) == [1.0] * 6 + [2.0]
    assert sum(served.executed) == 2
    assert cache.shared == 5
    assert (await served.ask(1, id="late")).id == "late"


async def test_each_answer_has_the_id_of_its_request(serve, cache):
    served = await serve(cache)

    replies = [served.ask(1, id=name) for name in ("a", "b")]

    assert [(await each).id for each in replies] == ["a", "b"]


async def test_who_follows_counts_as_a_hit(serve, cache):
    served = await serve(cache)

    await values(*[served.ask(1) for _ in range(3)])
    await values(served.ask(1))

    found = served.statistics
    assert (found.cache_hit.count, found.cache_miss.count, found.success.count) == (3, 1, 4)
    assert (found.inference_count, found.execution_count) == (1, 1)
    assert (cache.counters.lookups, cache.counters.hits, cache.shared) == (4, 3, 2)


async def test_requests_with_another_priority_or_timeout_do_not_wait_for_each_other(serve, cache):
    more = "dynamic_batching { priority_levels: 2 default_priority_level: 2 }"
    served = await serve(cache, more)
    served.gate.clear()

    replies = [served.ask(1, priority=p, timeout_us=t) for p, t in [(0, 0), (1, 0), (0, 10**7)]]
    await running(served)
    served.gate.set()

    assert await values(*replies) == [1.0] * 3
    assert sum(served.executed) == 3 and cache.shared == 0


async def test_an_error_of_the_model_is_that_of_all_who_wait_and_of_nobody_later(serve, cache):
    served = await serve(cache)

    errors = await values(*[served.ask(-1) for _ in range(3)])
    later = await values(served.ask(-1))

    assert all("below zero" in each for each in errors + later)
    assert len(served.executed) == 2
    assert sum(served.statistics.failures.values()) == 4
    assert cache.shared == 0


async def test_a_cancelled_leader_leaves_the_others(serve, cache):
    served = await serve(cache)
    served.gate.clear()
    blocker = served.ask(9)  # the leader is in the queue behind it
    await running(served)
    leader, *followers = [served.ask(1) for _ in range(4)]

    leader.cancel()
    assert "cancel" in (await values(leader))[0]
    await asyncio.sleep(0.01)
    served.gate.set()

    assert await values(blocker, *followers) == [9.0, 1.0, 1.0, 1.0]
    assert sum(served.executed) == 2 and cache.shared == 2


async def test_a_leader_that_is_cancelled_while_it_runs_leaves_the_others(serve, cache):
    served = await serve(cache)
    served.gate.clear()
    leader, follower = served.ask(1), served.ask(1)
    await running(served)

    leader.cancel()
    served.gate.set()

    assert await values(follower) == [1.0]


async def test_a_cancelled_follower_ends_at_once_and_only_itself(serve, cache):
    served = await serve(cache)
    served.gate.clear()
    leader, one, other = [served.ask(1) for _ in range(3)]

    one.cancel()

    assert "cancel" in (await values(one))[0]
    served.gate.set()
    assert await values(leader, other) == [1.0, 1.0]
    assert len(served.executed) == 1
    assert served.statistics.failures["CANCELED"] == 1


async def test_the_deadline_of_each_holds(serve, cache):
    served = await serve(cache)
    served.gate.clear()
    loop = asyncio.get_running_loop()

    def ask(left_s):
        request = served.request(1, deadline_ns=int((loop.time() + left_s) * 1e9))
        return infer_with_deadline(served.chain.handler, request)

    leader, hasty, patient = ask(60), ask(0.02), ask(60)

    assert "Deadline" in (await values(hasty))[0]
    served.gate.set()
    assert await values(leader, patient) == [1.0, 1.0]


TIMEOUT = """dynamic_batching { default_queue_policy {
  default_timeout_microseconds: 200000 timeout_action: REJECT } }"""


async def test_after_a_refusal_those_that_came_later_still_wait(serve, cache):
    served = await serve(cache, TIMEOUT)
    served.gate.clear()
    blocker = served.ask(9)
    await running(served)
    leader, early = served.ask(1), served.ask(1)
    await asyncio.sleep(0.1)
    late = served.ask(1)

    assert await values(leader) == ["Request timeout expired"]
    served.gate.set()

    assert await values(blocker, early, late) == [9.0, 1.0, 1.0]
    assert sum(served.executed) == 2


async def test_those_that_came_before_are_refused_with_their_leader(serve, cache):
    served = await serve(cache, TIMEOUT)
    served.gate.clear()
    blocker = served.ask(9)
    await running(served)

    refused = await values(*[served.ask(1) for _ in range(2000)])
    served.gate.set()

    assert set(refused) == {"Request timeout expired"}
    assert await values(blocker) == [9.0]


async def test_a_request_that_is_refused_at_once_has_nobody_who_waits(serve, cache):
    served = await serve(cache, "dynamic_batching { default_queue_policy { max_queue_size: 1 } }")
    served.gate.clear()
    replies = [served.ask(9)]
    await running(served)
    replies.append(served.ask(8))

    for _ in range(3):
        with pytest.raises(CoreError, match="Exceeds maximum queue size"):
            served.ask(1)

    served.gate.set()
    assert await values(*replies) == [9.0, 8.0]
    assert await values(served.ask(1)) == [1.0]


async def test_a_large_answer_that_is_not_stored_goes_to_all_who_wait(serve):
    size = pipeline_cache.LARGE_BYTES // 4 + 1
    cache = Coalescing(LimitedCache(LocalSettings(1 << 26, largest=100)))
    served = await serve(cache)
    served.gate.clear()
    replies = [served.ask(1, size) for _ in range(3)]
    await running(served)
    while cache._following < 2:  # threads compute the keys of large requests
        await asyncio.sleep(0.001)
    served.gate.set()

    assert await values(*replies) == [1.0] * 3
    assert sum(served.executed) == 1
    await values(served.ask(1, size))
    assert sum(served.executed) == 2


async def test_answers_are_copies_of_the_batch(serve, cache):
    served = await serve(cache)
    leader, follower = served.ask(3), served.ask(3)

    mine, other = [(await each).output("y") for each in (leader, follower)]

    assert not np.shares_memory(mine.array, other.array)


class Slow(Cache):
    """Answers later, and stores nothing."""

    def ask(self, key, found):
        self.counters.lookups += 1
        asyncio.get_running_loop().call_later(0.01, found, None)

    def insert(self, key, outputs):
        pass


async def test_requests_follow_while_the_first_is_still_looked_up(serve):
    cache = Coalescing(Slow())
    served = await serve(cache)

    replies = [served.ask(1) for _ in range(3)]
    replies[0].cancel()

    found = await values(*replies)
    assert "cancel" in found[0] and found[1:] == [1.0, 1.0]
    assert sum(served.executed) == 1 and cache.counters.lookups == 3


async def test_nothing_is_left_of_any_request(serve, cache):
    served = await serve(cache)
    served.gate.clear()
    replies = [served.ask(number % 7 - 2) for number in range(70)]
    for each in replies[::3]:
        each.cancel()
    served.gate.set()

    await values(*replies)

    assert not cache._groups and cache._following == 0


async def in_order(served, *numbers):
    """Ask for the numbers while the gate is closed; return the replies, and the places that were answered."""
    answered = []
    served.gate.clear()
    replies = [served.ask(number) for number in numbers]
    for place, reply in enumerate(replies):
        reply.listen(lambda item, final, place=place: answered.append(place))
    await running(served, 2)  # the first one was asked for before
    return replies, answered


async def all_of(answered, count):
    """Wait until so many are answered."""

    async def wait():
        while len(answered) < count:
            await asyncio.sleep(0.001)

    await asyncio.wait_for(wait(), 30)


async def test_with_preserve_ordering_followers_and_stored_answers_keep_their_place(serve, cache):
    served = await serve(cache, "dynamic_batching { preserve_ordering: true }")
    await served.ask(7)
    _, answered = await in_order(served, 1, 2, 1, 7, 2)

    assert answered == []  # that of 7 is known
    served.gate.set()
    await all_of(answered, 5)

    assert answered == [0, 1, 2, 3, 4]
    assert cache.shared == 2 and served.statistics.cache_hit.count == 3


async def test_with_preserve_ordering_a_cancelled_leader_holds_nobody_back(serve, cache):
    served = await serve(cache, "dynamic_batching { preserve_ordering: true }")
    await served.ask(7)
    replies, answered = await in_order(served, 9, 1, 1, 7)

    replies[1].cancel()
    served.gate.set()
    await all_of(answered, 4)

    assert answered == [0, 1, 2, 3]
