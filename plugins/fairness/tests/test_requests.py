"""Single requests in a fair queue: order, bounds, cancellation, deadlines, sequences, streams, steps."""

import asyncio

import pytest

import core
from core.errors import CoreError, Kind
from core.request import SEQUENCE_END, SEQUENCE_START, InferenceRequest

from .conftest import BATCHES, IO

ALICE, BOB = 1, 2
POLICY = "dynamic_batching { default_queue_policy { %s } }"


def flat(served):
    return [value for batch in served.batches for value in batch]


async def answers(replies):
    """Await replies; return "ok", or the kind and the text of the error."""
    found = await asyncio.gather(*replies, return_exceptions=True)
    return [f"{e.kind.name}: {e.message}" if isinstance(e, CoreError) else "ok" for e in found]


def test_requests_of_one_caller_stay_in_order(virtual):
    async def test(serve):
        served = await serve(IO)
        await asyncio.gather(*(served.ask(ALICE, i) for i in range(20)))

        assert flat(served) == [float(i) for i in range(20)]

    virtual(test)


def test_callers_take_turns(virtual):
    async def test(serve):
        served = await serve(IO)
        replies = [served.ask(ALICE, i) for i in range(6)]
        replies += [served.ask(BOB, 100 + i) for i in range(3)]
        await asyncio.gather(*replies)

        order = flat(served)
        assert order[0] == 0.0
        assert max(order.index(100.0 + i) for i in range(3)) <= 6
        assert sorted(order[-2:]) == [4.0, 5.0]

    virtual(test)


def test_priorities_order_the_requests_of_one_caller_and_not_those_of_another(virtual):
    levels = "max_batch_size: 1 dynamic_batching { priority_levels: 3 default_priority_level: 3 } "

    async def test(serve):
        served = await serve(levels + IO)
        replies = [served.ask(ALICE, i) for i in range(5)]
        replies += [served.ask(ALICE, 50, priority=1), served.ask(BOB, 100)]
        await asyncio.gather(*replies)

        order = flat(served)
        assert order.index(50.0) < order.index(1.0)
        assert order.index(100.0) <= 2

    virtual(test)


def test_a_caller_with_too_many_requests_is_refused_with_its_name_and_bound(virtual):
    async def test(serve):
        served = await serve(IO, settings={"max_waiting": 3})
        replies = [served.ask(ALICE, i) for i in range(4)]

        with pytest.raises(CoreError) as caught:
            served.ask(ALICE, 4)
        replies.append(served.ask(BOB, 100))

        assert caught.value.kind is Kind.EXHAUSTED
        assert caught.value.message == (
            "caller 'alice' has 3 requests waiting for model 'm', its limit is 3 (max_waiting)"
        )
        assert await answers(replies) == ["ok"] * 5
        assert served.queue.callers.of(ALICE).counts.refused == 1
        assert served.chain.statistics.failures["REJECTED"] == 1

    virtual(test)


def test_a_full_model_refuses_the_caller_that_waits_most(virtual):
    text = "max_batch_size: 1 " + POLICY % "max_queue_size: 4" + IO

    async def test(serve):
        served = await serve(text)
        replies = [served.ask(ALICE, 0)]
        await asyncio.sleep(0.001)  # it runs
        replies += [served.ask(ALICE, i) for i in range(1, 5)]
        with pytest.raises(CoreError, match="Exceeds maximum queue size"):
            served.ask(ALICE, 5)

        bob = [served.ask(BOB, 100), served.ask(BOB, 101)]

        assert await answers(bob) == ["ok", "ok"]
        full = "UNAVAILABLE: Exceeds maximum queue size"
        assert await answers(replies) == ["ok", "ok", "ok", full, full]

    virtual(test)


def test_each_priority_level_is_full_by_itself_and_loses_only_requests_of_its_own(virtual):
    text = (
        "max_batch_size: 1 dynamic_batching { priority_levels: 2 default_priority_level: 2 "
        "default_queue_policy { max_queue_size: 3 } }" + IO
    )

    async def test(serve):
        served = await serve(text)
        replies = [served.ask(ALICE, 0)]
        await asyncio.sleep(0.001)  # it runs
        low = [served.ask(ALICE, i) for i in range(1, 4)]
        high = [served.ask(ALICE, 10 + i, priority=1) for i in range(3)]
        with pytest.raises(CoreError, match="Exceeds maximum queue size"):
            served.ask(ALICE, 20, priority=1)
        bob = [served.ask(BOB, 100, priority=1)]

        full = "UNAVAILABLE: Exceeds maximum queue size"
        assert await answers(replies + low + bob) == ["ok"] * 5
        assert await answers(high) == ["ok", "ok", full]

    virtual(test)


def test_a_policy_that_changes_while_the_model_serves_holds_at_once(virtual):
    text = "max_batch_size: 1 " + POLICY % "max_queue_size: 4" + IO

    async def test(serve):
        served = await serve(text)
        before = served.model.config
        changed = type(before)()
        changed.CopyFrom(before)
        changed.dynamic_batching.default_queue_policy.max_queue_size = 50
        served.model.config = changed
        served.chain.configure(before, changed)

        assert await answers([served.ask(ALICE, i) for i in range(50)]) == ["ok"] * 50

    virtual(test)


def test_a_request_that_is_cancelled_while_it_waits_never_runs(virtual):
    async def test(serve):
        served = await serve(IO)
        replies = [served.ask(ALICE, i) for i in range(5)]

        replies[3].cancel()

        assert served.queue.waiting == 3
        assert (await answers(replies))[3] == "CANCELLED: request was cancelled"
        assert flat(served) == [0.0, 1.0, 2.0, 4.0]
        assert served.chain.statistics.failures["CANCELED"] == 1

    virtual(test)


def test_a_request_that_is_cancelled_while_it_runs_frees_its_place(virtual):
    async def test(serve):
        served = await serve(IO)
        replies = [served.ask(ALICE, i) for i in range(3)]
        await asyncio.sleep(0.001)

        replies[0].cancel()

        assert (await answers(replies[1:])) == ["ok", "ok"]

    virtual(test)


def test_a_request_whose_deadline_passes_while_it_waits_never_runs(virtual):
    async def test(serve):
        served = await serve(IO)
        replies = [served.ask(ALICE, i) for i in range(3)]
        replies.append(served.ask(ALICE, 9, deadline_ns=served.loop.time_ns() + 10_000_000))

        assert await answers(replies) == ["ok", "ok", "ok", "DEADLINE_EXCEEDED: Deadline Exceeded"]
        assert 9.0 not in flat(served)

    virtual(test)


def test_the_timeout_of_the_model_holds_in_the_fair_queue(virtual):
    text = "max_batch_size: 1 " + POLICY % "default_timeout_microseconds: 30000" + IO

    async def test(serve):
        served = await serve(text)
        begun = served.loop.time()
        replies = [served.ask(ALICE, i) for i in range(4)]

        assert (await answers(replies[-1:])) == ["UNAVAILABLE: Request timeout expired"]
        assert served.loop.time() - begun == pytest.approx(0.03, abs=0.001)
        assert (await answers(replies[:2])) == ["ok", "ok"]

    virtual(test)


def test_what_the_model_refuses_reaches_the_caller_and_frees_its_place(virtual):
    class Fails(core.ModelInstance):
        async def execute(self, batch):
            raise RuntimeError("it cannot")

    async def test(serve):
        served = await serve(IO, instance=Fails)
        found = await answers([served.ask(ALICE, i) for i in range(5)])

        assert len(found) == 5 and all("it cannot" in each for each in found)

    virtual(test)


def test_an_unexpected_error_of_the_model_reaches_the_caller_and_frees_its_place(virtual):
    def inner(request):
        raise KeyError("gone")

    async def test(serve):
        served = await serve(IO)
        before, served.queue._inner = served.queue._inner, inner
        found = await answers([served.ask(ALICE, i) for i in range(3)])
        served.queue._inner = before

        assert found == ["INTERNAL: KeyError: 'gone'"] * 3
        assert served.queue.used == 0

    virtual(test)


def test_requests_of_the_server_itself_pass_straight(virtual):
    async def test(serve):
        served = await serve(IO)
        replies = [served.ask(ALICE, i) for i in range(10)]
        replies.append(served.ask(0, 99))
        await asyncio.gather(*replies)

        assert flat(served).index(99.0) == 1
        assert served.queue.straight == 1

    virtual(test)


def test_a_version_that_unloads_answers_what_waits(virtual):
    async def test(serve):
        served = await serve()
        replies = [served.ask(ALICE, i) for i in range(100)]

        await served.chain.drain()

        assert await answers(replies) == ["ok"] * 100
        with pytest.raises(CoreError, match="stopped accepting"):
            served.ask(ALICE)

    virtual(test)


# sequences ---------------------------------------------------------------------


class Sums(core.ModelInstance):
    """Notes the values of each execution; takes 20 ms."""

    async def execute(self, batch):
        self.model.batches.append(
            [float(each.inputs["x"].array.flat[0]) for each in batch.requests]
        )
        await asyncio.sleep(0.02)
        return {"y": batch["x"]}


@pytest.mark.parametrize("strategy", ["direct {}", "oldest { max_candidate_sequences: 2 }"])
def test_sequences_of_many_callers_end_and_keep_their_order(virtual, strategy):
    text = f"max_batch_size: 2 sequence_batching {{ {strategy} }}" + IO

    async def sequence(served, caller, number):
        """Send four requests without waiting for answers, then four with waiting."""
        base = number * 100
        replies = [
            served.ask(caller, base + i, correlation_id=number, flags=0 if i else SEQUENCE_START)
            for i in range(4)
        ]
        await asyncio.gather(*replies)
        for i in range(4, 8):
            flags = SEQUENCE_END if i == 7 else 0
            await served.ask(caller, base + i, correlation_id=number, flags=flags)

    async def test(serve):
        served = await serve(text, instance=Sums)
        runs = [sequence(served, ALICE + i % 2, i + 1) for i in range(12)]
        await asyncio.wait_for(asyncio.gather(*runs), 60)

        order = flat(served)
        for number in range(1, 13):
            own = [value for value in order if value // 100 == number]
            assert own == [number * 100.0 + i for i in range(8)]

    virtual(test)


def test_sequences_of_a_light_caller_begin_before_those_of_a_flood(virtual):
    text = "max_batch_size: 1 sequence_batching { direct {} }" + IO

    async def sequence(served, caller, number):
        await served.ask(caller, number, correlation_id=number, flags=SEQUENCE_START)
        await served.ask(caller, number, correlation_id=number, flags=SEQUENCE_END)
        return served.loop.time()

    async def test(serve):
        served = await serve(text, instance=Sums)
        floods = [asyncio.ensure_future(sequence(served, BOB, i + 1)) for i in range(20)]
        await asyncio.sleep(0.001)

        begun = served.loop.time()
        assert await sequence(served, ALICE, 1000) - begun < 0.2
        await asyncio.gather(*floods)

    virtual(test)


def test_a_caller_that_had_a_long_sequence_while_alone_owes_nothing_for_it(virtual):
    text = "max_batch_size: 1 sequence_batching { direct {} }" + IO

    async def test(serve):
        served = await serve(text, instance=Sums)
        await served.ask(ALICE, correlation_id=1000, flags=SEQUENCE_START)
        for _ in range(200):
            await served.ask(ALICE, correlation_id=1000)
        await served.ask(ALICE, correlation_id=1000, flags=SEQUENCE_END)
        both = SEQUENCE_START | SEQUENCE_END
        floods = [served.ask(BOB, correlation_id=i + 1, flags=both) for i in range(100)]

        assert await served.latency(ALICE, correlation_id=1001, flags=both) < 0.1
        await asyncio.gather(*floods)

    virtual(test)


# streams -----------------------------------------------------------------------


class Later(core.ModelInstance):
    """A decoupled model that answers long after its execution: it takes any number of requests at once."""

    async def execute(self, batch):
        for i in range(len(batch.requests)):
            asyncio.get_running_loop().create_task(self.answer(batch, i))

    async def answer(self, batch, i):
        for _ in range(3):
            await asyncio.sleep(0.5)
            batch.respond(i, {"y": batch.requests[i].inputs["x"].array}, final=False)
        batch.finish(i)


def test_a_decoupled_model_that_takes_more_gets_more(virtual):
    text = "model_transaction_policy { decoupled: true }" + IO

    async def test(serve):
        served = await serve(text, instance=Later)
        begun = served.loop.time()

        async def stream(i):
            return [each async for each in served.ask(ALICE + i % 2, i)]

        found = await asyncio.gather(*(stream(i) for i in range(50)))

        assert [len(each) for each in found] == [3] * 50
        assert served.loop.time() - begun < 3  # one after the other they take 75 s

    virtual(test)


def test_a_stream_takes_its_place_until_its_last_response(virtual):
    class Stream(core.ModelInstance):
        async def execute(self, batch):
            for _ in range(3):
                await asyncio.sleep(0.1)
                batch.respond(0, {"y": batch["x"]}, final=False)
            batch.finish(0)

    async def test(serve):
        served = await serve("model_transaction_policy { decoupled: true }" + IO, instance=Stream)

        async def stream(caller):
            return len([each async for each in served.ask(caller)])

        floods = [asyncio.ensure_future(stream(BOB)) for _ in range(10)]
        await asyncio.sleep(0.01)
        begun = served.loop.time()
        assert await stream(ALICE) == 3
        assert served.loop.time() - begun < 0.9
        await asyncio.gather(*floods)

    virtual(test)


# steps -------------------------------------------------------------------------


def step_of(served, client, value):
    """Send a step of a client's request to the model."""
    request = InferenceRequest(served.name, dict(client.inputs))
    request.parent = client
    return served.chain.handler(request)


def test_the_steps_of_an_ensemble_wait_for_their_caller_but_never_for_themselves(virtual):
    async def test(serve):
        served = await serve(IO)
        floods = [served.ask(BOB, i) for i in range(10)]
        client = served.ask(ALICE).request
        waits = step_of(served, client, 1)

        first = served.queue.callers.of(ALICE).waiting
        while not served.queue._clients:
            await asyncio.sleep(0.01)
        again = step_of(served, client, 2)

        assert first == 2 and served.queue.straight == 1
        await asyncio.gather(*floods, waits, again)

    virtual(test)


def test_a_priority_is_ignored_without_levels(virtual):
    async def test(serve):
        served = await serve(BATCHES)
        await asyncio.gather(*(served.ask(ALICE, i, priority=i % 3) for i in range(20)))

        assert flat(served) == [float(i) for i in range(20)]

    virtual(test)
