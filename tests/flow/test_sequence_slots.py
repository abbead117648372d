"""Slots of sequences: which sequence gets one, waits for one, and gives one up; over virtual time."""

import asyncio

import pytest
from flow.sequences import DIRECT, END, OLDEST, START, Sum, ask, batching, refusal, y

import core
from core.errors import CoreError, Kind
from core.pipeline.batching.queue import QueuedRequest
from core.pipeline.sequence.slots import InstanceSlots, Sequence
from core.request import InferenceRequest


async def test_a_sequence_without_a_place_waits_for_an_end(serve):
    chain = await serve(Sum, DIRECT, max_batch_size=1)
    await ask(chain, 1, 1, START)

    waiting = ask(chain, 2, 5, START | END)
    await asyncio.sleep(0.5)
    assert not waiting.finished
    await ask(chain, 1, 1, END)

    assert await y(waiting) == 5


async def test_sequences_are_distributed_over_instances(serve):
    chain = await serve(
        Sum, DIRECT + " instance_group [ { count: 2 kind: KIND_CPU } ]", max_batch_size=2
    )
    loop = asyncio.get_running_loop()
    start = loop.time()

    for reply in [ask(chain, sequence, 1, START) for sequence in (1, 2)]:
        await reply

    assert loop.time() - start == pytest.approx(0.010, abs=0.001)
    assert chain.recorder.batches == [[1], [2]]


async def test_an_idle_sequence_gives_up_its_place(serve):
    chain = await serve(Sum, batching("direct { }", idle_us=200_000), max_batch_size=1)
    loop = asyncio.get_running_loop()
    await ask(chain, 1, 1, START)
    start = loop.time()

    assert await y(ask(chain, 2, 5, START | END)) == 5

    assert loop.time() - start == pytest.approx(0.2, abs=0.02)
    assert "START flag" in refusal(chain, 1, 1)


async def test_waiting_for_a_place_is_not_idleness(serve):
    chain = await serve(Sum, batching("direct { }", idle_us=50_000), max_batch_size=1)
    await ask(chain, 1, 1, START)
    waiting = ask(chain, 2, 5, START)
    for _ in range(10):
        await asyncio.sleep(0.03)
        await ask(chain, 1, 1)
    await ask(chain, 1, 1, END)

    assert await y(waiting) == 5


@pytest.mark.parametrize("strategy", ["direct { }", "oldest { max_candidate_sequences: 1 }"])
async def test_sequences_without_callers_free_their_slots(serve, strategy):
    chain = await serve(Sum, batching(strategy, idle_us=3_600_000_000), max_batch_size=1)
    loop = asyncio.get_running_loop()
    begun = ask(chain, 1, 1, START)
    waiting = [ask(chain, 2, 5, START), ask(chain, 2, 7), ask(chain, 3, 9, START)]
    start = loop.time()

    draining = asyncio.ensure_future(chain.drain())

    assert await y(begun) == 1
    assert [await y(reply) for reply in waiting] == [5, 12, 9]
    await draining
    assert loop.time() - start < 1


async def test_no_more_candidates_than_allowed_are_taken(serve):
    chain = await serve(Sum, OLDEST)

    replies = [ask(chain, sequence, sequence, START) for sequence in (1, 2, 3)]
    await asyncio.sleep(0.1)

    assert [reply.finished for reply in replies] == [True, True, False]


async def test_a_cancelled_end_frees_the_place(serve):
    chain = await serve(Sum, DIRECT, max_batch_size=1)
    running = ask(chain, 1, 1, START)
    end = ask(chain, 1, 1, END)
    waiting = ask(chain, 2, 3, START | END)

    end.cancel()

    await running
    assert await y(waiting) == 3


@pytest.mark.parametrize("config", [DIRECT, OLDEST])
async def test_a_cancelled_end_frees_the_slot_even_if_requests_wait_before_it(serve, config):
    chain = await serve(Sum, config, max_batch_size=1)
    replies = [ask(chain, 1, 1, START), ask(chain, 1, 1), ask(chain, 1, 1)]
    end = ask(chain, 1, 1, END)
    waiting = [ask(chain, sequence, 3, START | END) for sequence in (2, 3)]

    end.cancel()

    assert [await y(reply) for reply in [*replies, *waiting]] == [1, 2, 3, 3, 3]


@pytest.mark.parametrize("config", [DIRECT, OLDEST])
async def test_sequences_of_an_instance_that_breaks_end_and_the_others_go_on(serve, config):
    class Breaks(Sum):
        async def execute(self, batch):
            if (batch["x"] < 0).any():
                raise core.Fatal("the device is gone")
            return await super().execute(batch)

    more = " instance_group [ { count: 2 kind: KIND_CPU } ]"
    chain = await serve(Breaks, config + more, max_batch_size=1)
    for sequence in (1, 2):
        await ask(chain, sequence, 5, START)

    broken, after = ask(chain, 1, -1), ask(chain, 1, 1)

    with pytest.raises(CoreError, match="the device is gone"):
        await broken
    with pytest.raises(CoreError, match="the instance of the sequence is gone") as error:
        await after
    assert error.value.kind is Kind.UNAVAILABLE
    assert "START flag" in refusal(chain, 1, 1)
    assert await y(ask(chain, 2, 1, END)) == 6
    assert await y(ask(chain, 1, 2, START)) == 2


class CountedSequence(Sequence):
    """Counts how often it is looked at."""

    looks = 0

    @property
    def running(self):
        CountedSequence.looks += 1
        return False

    @running.setter
    def running(self, value):
        pass


def test_thousands_of_sequences_without_a_request_cost_nothing():
    slots = InstanceSlots(None, 5000)
    for number in range(4000):
        slots.enter(CountedSequence(number, 0), slots.free_slot())
    busy = CountedSequence("busy", 0)
    slots.enter(busy, slots.free_slot())
    request = InferenceRequest("sum", {})
    busy.waiting.append(QueuedRequest(request, core.Reply(request)))
    busy.changed()
    CountedSequence.looks = 0

    assert slots.has_work
    assert slots.ready() == [busy]
    slots.take(busy, 0)
    assert not slots.has_work

    assert CountedSequence.looks == 2
