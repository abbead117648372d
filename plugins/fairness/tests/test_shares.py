"""What callers get of a model, in virtual time, with core's own batcher behind the fair queue."""

import asyncio

import pytest
from core_fairness.settings import Fairness

from core.response import Reply

from .conftest import BATCHES, IO

ALICE, BOB, CAROL = 1, 2, 3
ALONE = IO


def p99(latencies):
    return sorted(latencies)[int(len(latencies) * 0.99)]


async def light(served, count=300, caller=ALICE):
    """Send requests of a light caller, one at a time with pauses; return their latencies."""
    found = []
    for i in range(count):
        found.append(await served.latency(caller))
        await asyncio.sleep(0.0137 + 0.0071 * (i % 7))  # out of step with the executions
    return found


@pytest.mark.parametrize(
    ("text", "clients"),
    [
        (BATCHES, 64),
        (BATCHES + "instance_group [ { count: 3 } ]", 64),
        (ALONE, 32),
        (
            BATCHES.replace("{}", "{ preferred_batch_size: 4 max_queue_delay_microseconds: 3000 }"),
            64,
        ),
    ],
    ids=["batches", "three instances", "one by one", "with a delay"],
)
def test_a_light_caller_beside_a_flood_waits_at_most_twice_as_long_as_alone(virtual, text, clients):
    async def test(serve):
        served = await serve(text)
        alone = p99(await light(served))
        flood = asyncio.ensure_future(served.flood(BOB, clients, 1000))
        await asyncio.sleep(1)

        beside = p99(await light(served))

        flood.cancel()
        assert alone < beside <= 2 * alone

    virtual(test)


def test_many_floods_cost_a_light_caller_no_more_than_one(virtual):
    async def test(serve):
        served = await serve()
        alone = p99(await light(served))
        floods = [asyncio.ensure_future(served.flood(n, 16, 1000)) for n in range(10, 18)]
        await asyncio.sleep(1)

        assert p99(await light(served)) <= 2 * alone
        for each in floods:
            each.cancel()

    virtual(test)


def test_without_fair_shares_the_light_caller_waits_behind_the_flood(virtual):
    async def test(serve):
        served = await serve(by_caller=False)
        alone = p99(await light(served))
        flood = asyncio.ensure_future(served.flood(BOB, 64, 1000))
        await asyncio.sleep(1)

        assert p99(await light(served)) > 4 * alone
        flood.cancel()

    virtual(test)


def test_shares_are_in_proportion_to_weights(virtual):
    async def test(serve):
        served = await serve(settings={"weights": {"alice": 3, "bob": 1}, "default_weight": 0.5})
        got = await asyncio.gather(*(served.flood(each, 40, 60) for each in (ALICE, BOB, CAROL)))

        total = sum(got)
        assert [each / total for each in got] == pytest.approx(
            [3 / 4.5, 1 / 4.5, 0.5 / 4.5], abs=0.02
        )

    virtual(test)


def test_a_caller_with_many_rows_gets_as_many_rows_as_one_with_few(virtual):
    async def test(serve):
        served = await serve(batch_s=0.001, row_s=0.001)
        large, small = await asyncio.gather(
            served.flood(ALICE, 16, 60, rows=6), served.flood(BOB, 64, 60, rows=1)
        )

        assert large * 6 == pytest.approx(small, rel=0.05)

    virtual(test)


def test_other_weights_hold_at_once_for_requests_that_wait(virtual):
    async def test(serve):
        served = await serve(ALONE)
        floods = [asyncio.ensure_future(served.flood(each, 30, 200)) for each in (ALICE, BOB)]
        await asyncio.sleep(10)
        alice, bob = (served.queue.callers.of(each).counts for each in (ALICE, BOB))
        before = (alice.requests, bob.requests)
        assert before[0] == pytest.approx(before[1], rel=0.05)

        served.queue.set(Fairness.read({"weights": {"alice": 4}}))
        await asyncio.sleep(10)

        assert alice.requests - before[0] == pytest.approx(4 * (bob.requests - before[1]), rel=0.05)
        for each in floods:
            each.cancel()

    virtual(test)


@pytest.mark.parametrize("instances", [1, 3])
def test_instances_are_as_busy_as_without_fair_shares(virtual, instances):
    async def test(serve):
        text = f"{BATCHES} instance_group [ {{ count: {instances} }} ]"
        served = await serve(text)
        got = await asyncio.gather(*(served.flood(each, 40, 20) for each in (ALICE, BOB)))

        # 50 executions of 8 rows in a second, of each instance.
        assert sum(got) >= 0.97 * 50 * 8 * 20 * instances
        full = [batch for batch in served.batches if len(batch) == 8]
        assert len(full) >= 0.97 * len(served.batches)

    virtual(test)


def test_no_more_is_let_through_than_one_batch_for_each_instance(virtual):
    async def test(serve):
        served = await serve(BATCHES + "instance_group [ { count: 2 } ]")
        replies = [served.ask(ALICE) for _ in range(100)]

        assert served.queue.used == 16 and served.queue.waiting == 84
        await asyncio.gather(*replies)

    virtual(test)


def coalescing(inner):
    """Return a handler that answers equal requests at the same time with one answer, as a cache does."""
    waiting = {}

    def handler(request):
        value, reply = float(request.inputs["x"].array.flat[0]), Reply(request)
        if value in waiting:
            waiting[value].append(reply)
            return reply
        waiting[value] = [reply]

        def answer(item, final):
            for each in waiting.pop(value):
                each.send(item, final)

        inner(request).listen(answer)
        return reply

    return handler


def test_requests_that_wait_for_an_equal_one_make_no_room_for_others(virtual):
    async def test(serve):
        served = await serve(ALONE + "instance_group [ { count: 2 } ]")
        served.queue.layer(coalescing(served.queue._inner))
        replies = [served.ask(ALICE) for _ in range(300)]
        await asyncio.sleep(0.01)
        assert served.queue.used == 300
        replies += [served.ask(ALICE, 1 + i) for i in range(300)]
        await asyncio.sleep(0.05)

        assert served.queue.used <= 4
        await served.ask(BOB, 1000)
        assert len(served.batches) < 20
        await asyncio.gather(*replies)

    virtual(test)


def test_requests_that_cannot_share_a_batch_are_not_let_through_together(virtual):
    async def test(serve):
        served = await serve()
        clients = [
            asyncio.ensure_future(served.flood(BOB, 1, 1000, columns=i + 1)) for i in range(40)
        ]
        await asyncio.sleep(5)

        assert served.queue.window.limit <= 3
        for each in clients:
            each.cancel()

    virtual(test)


def test_a_caller_that_is_alone_gets_everything(virtual):
    async def test(serve):
        served = await serve(settings={"weights": {"alice": 0.001}})

        assert await served.flood(ALICE, 40, 20) >= 0.97 * 50 * 8 * 20

    virtual(test)
