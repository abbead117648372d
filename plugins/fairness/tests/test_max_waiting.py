"""The bound of waiting requests over several workers: tables of one memory, as the workers map it."""

import asyncio
import os

import pytest
from core_fairness import waiting_table
from core_fairness.waiting_table import WaitingTable

from core.errors import CoreError
from frontends.shared.access.bucket_table import Sizes

from .conftest import IO

ALICE, BOB = 1, 2


@pytest.fixture
def tables():
    """Return the tables of two workers."""
    file = WaitingTable.create_file(2)
    yield [WaitingTable(file, 2, worker) for worker in range(2)]
    os.close(file)


async def busy(serve, tables, most=3):
    """Return a queue of each worker, whose instance runs a request of bob."""
    found = [await serve(IO, {"max_waiting": most}, table=table) for table in tables]
    replies = [served.ask(BOB) for served in found]
    await asyncio.sleep(0.001)
    return found, replies


def test_requests_of_a_caller_wait_in_all_workers_together(virtual, tables):
    async def test(serve):
        (one, other), replies = await busy(serve, tables)
        replies += [one.ask(ALICE), other.ask(ALICE), one.ask(ALICE)]

        for served in (one, other):
            text = (
                "caller 'alice' has 3 requests waiting for model 'm', its limit is 3 .max_waiting."
            )
            with pytest.raises(CoreError, match=text):
                served.ask(ALICE)
        replies += [each.ask(BOB) for each in (one, other, one)]
        await asyncio.gather(*replies)

        assert [each.queue.callers.of(ALICE).counts.refused for each in (one, other)] == [1, 1]
        assert [each.chain.statistics.failures["REJECTED"] for each in (one, other)] == [1, 1]
        await other.ask(ALICE)

    virtual(test)


def test_a_request_that_need_not_wait_is_not_refused(virtual, tables):
    async def test(serve):
        (one, other), replies = await busy(serve, tables)
        replies += [one.ask(ALICE) for _ in range(3)]
        await replies.pop(1)

        await other.ask(ALICE)

        await asyncio.gather(*replies)

    virtual(test)


def test_who_leaves_or_is_cancelled_waits_no_longer(virtual, tables):
    async def test(serve):
        (one, other), replies = await busy(serve, tables)
        waiting = [one.ask(ALICE) for _ in range(3)]

        waiting[1].cancel()
        replies.append(other.ask(ALICE))

        with pytest.raises(CoreError, match="max_waiting"):
            other.ask(ALICE)
        found = await asyncio.gather(*replies, *waiting, return_exceptions=True)
        assert sum(isinstance(each, CoreError) for each in found) == 1

    virtual(test)


def test_a_caller_at_its_bound_takes_no_place_of_others_in_a_full_queue(virtual, tables):
    full = "max_batch_size: 1 dynamic_batching { default_queue_policy { max_queue_size: 2 } }" + IO

    async def test(serve):
        one = await serve(IO, {"max_waiting": 2}, table=tables[0])
        other = await serve(full, {"max_waiting": 2}, table=tables[1])
        replies = [one.ask(BOB), other.ask(BOB)]
        await asyncio.sleep(0.001)  # these run
        replies += [one.ask(ALICE), one.ask(ALICE), other.ask(BOB), other.ask(BOB)]

        with pytest.raises(CoreError, match="max_waiting"):
            other.ask(ALICE)

        await asyncio.gather(*replies)
        # A caller below its bound does take a place, and is counted once.
        replies = [other.ask(BOB)]
        await asyncio.sleep(0.001)
        bob = [other.ask(BOB), other.ask(BOB)]
        replies += [other.ask(ALICE), one.ask(BOB)]
        await asyncio.sleep(0.001)
        replies.append(one.ask(ALICE))
        with pytest.raises(CoreError, match="max_waiting"):
            one.ask(ALICE)
        found = await asyncio.gather(*replies, *bob, return_exceptions=True)
        texts = [each.message for each in found if isinstance(each, CoreError)]
        assert texts == ["Exceeds maximum queue size"]

    virtual(test)


def test_the_bound_may_change_while_requests_wait(virtual, tables):
    async def test(serve):
        from core_fairness.settings import Fairness

        (one, other), replies = await busy(serve, tables)
        replies += [one.ask(ALICE) for _ in range(3)]
        for each in (one, other):
            each.queue.set(Fairness.read({"max_waiting": 4}))

        replies.append(other.ask(ALICE))

        with pytest.raises(CoreError, match="its limit is 4"):
            one.ask(ALICE)
        await asyncio.gather(*replies)

    virtual(test)


def test_the_requests_of_a_worker_that_has_ended_wait_no_longer(tables):
    place = tables[0].place_of("alice", "m 1")
    for _ in range(3):
        assert tables[1].enter(place, 3) >= 0
    assert tables[0].enter(place, 3) is None

    tables[0].clear(1)

    assert tables[0].enter(place, 3) >= 0


def test_callers_models_and_versions_have_bounds_of_their_own(tables):
    places = [("alice", "m 1"), ("bob", "m 1"), ("alice", "m 2"), ("alice", "n 1")]

    for caller, model in places:
        place = tables[0].place_of(caller, model)
        assert tables[0].enter(place, 1) >= 0
        assert tables[1].enter(place, 1) is None


def test_without_a_free_slot_each_worker_counts_for_itself(monkeypatch, virtual):
    monkeypatch.setattr(waiting_table, "_SIZES", Sizes(1, 0, 0))
    file = WaitingTable.create_file(2)
    tables = [WaitingTable(file, 2, worker) for worker in range(2)]
    tables[0].enter(tables[0].place_of("carol", "m 1"), 9)  # holds the only slot

    async def test(serve):
        (one, other), replies = await busy(serve, tables, most=2)
        for each in (one, other):
            replies += [each.ask(ALICE) for _ in range(2)]
            with pytest.raises(CoreError, match="max_waiting"):
                each.ask(ALICE)
        await asyncio.gather(*replies)

    virtual(test)
    os.close(file)
