"""Sequences: every request of one goes to the same place, in order; over virtual time."""

import asyncio
import random

import pytest
from flow.sequences import DIRECT, END, OLDEST, START, Sum, ask, batching, refusal, y


@pytest.mark.parametrize("config", [DIRECT, OLDEST])
async def test_requests_of_a_sequence_meet_the_same_state(serve, config):
    chain = await serve(Sum, config + " instance_group [ { count: 2 kind: KIND_CPU } ]")

    replies = [ask(chain, 7, value, START if value == 1 else 0) for value in (1, 2, 3)]
    replies.append(ask(chain, 7, 4, END))

    assert [await y(reply) for reply in replies] == [1, 3, 6, 10]


async def test_each_sequence_keeps_its_row_of_the_batch(serve):
    chain = await serve(Sum, DIRECT, max_batch_size=3)
    for sequence in (1, 2, 3):
        ask(chain, sequence, 1, START)
    await asyncio.sleep(0.05)

    await ask(chain, 3, 1)

    assert chain.recorder.batches[-1] == [None, None, 3]


async def test_rows_that_only_fill_are_no_requests(serve):
    chain = await serve(Sum, DIRECT, max_batch_size=3)
    for sequence in (1, 2):
        ask(chain, sequence, 1, START)
    await asyncio.sleep(0.05)

    await ask(chain, 2, 1)

    assert chain.statistics.success.count == 3
    assert chain.statistics.inference_count == 3
    assert chain.in_flight == chain.pending == 0


async def test_an_id_may_be_used_again_while_its_last_sequence_ends(serve):
    chain = await serve(Sum, DIRECT)

    replies = [ask(chain, 1, 1, START), ask(chain, 1, 2, END), ask(chain, 1, 10, START | END)]

    assert [await y(reply) for reply in replies] == [1, 3, 10]


async def test_start_in_the_middle_begins_anew(serve):
    chain = await serve(Sum, DIRECT)

    replies = [ask(chain, 1, value, flags) for value, flags in ((5, START), (6, 0), (7, START))]

    assert [await y(reply) for reply in replies] == [5, 11, 7]


async def test_the_first_request_of_a_sequence_must_have_the_start_flag(serve):
    chain = await serve(Sum, DIRECT)

    assert (
        "inference request for sequence 9 to model 'm' must specify the START flag on the first "
        "request of the sequence" in refusal(chain, 9, 1)
    )
    assert chain.in_flight == 0


@pytest.mark.parametrize("nothing", [0, ""])
async def test_a_correlation_id_is_required(serve, nothing):
    chain = await serve(Sum, DIRECT)

    assert "must specify a non-zero or non-empty correlation ID" in refusal(
        chain, nothing, 1, START
    )


async def test_a_request_of_a_sequence_has_one_row(serve):
    chain = await serve(Sum, DIRECT)

    assert "must specify batch-size 1" in refusal(chain, 1, 1, START, rows=2)


async def test_the_oldest_requests_of_the_candidates_make_a_batch(serve):
    chain = await serve(Sum, batching("oldest { max_candidate_sequences: 3 }"), max_batch_size=8)
    for sequence in (1, 2, 3):
        ask(chain, sequence, 1, START)
    await asyncio.sleep(0.05)
    before = len(chain.recorder.batches)

    replies = []
    for sequence in (1, 2, 3, 2, 1):
        replies.append(ask(chain, sequence, 1))
        await asyncio.sleep(0.0001)
    for reply in replies:
        await reply

    assert chain.recorder.batches[before:] == [[1], [2, 3, 1], [2]]


async def test_a_direct_batch_waits_for_the_utilization_no_longer_than_the_delay(serve):
    strategy = "direct { max_queue_delay_microseconds: 5000 minimum_slot_utilization: 1.0 }"
    chain = await serve(Sum, batching(strategy), max_batch_size=2)
    loop = asyncio.get_running_loop()
    start = loop.time()

    await ask(chain, 1, 1, START)
    assert loop.time() - start == pytest.approx(0.015, abs=0.001)

    both = [ask(chain, 1, 1), ask(chain, 2, 1, START)]
    for reply in both:
        await reply
    assert chain.recorder.batches[-1] == [1, 2]


@pytest.mark.parametrize("config", [DIRECT, OLDEST])
@pytest.mark.parametrize("seed", range(5))
async def test_random_sequences_all_end_rightly(serve, config, seed):
    """Many sequences at a time over few places: every sum is right, nothing is lost or mixed."""
    chance = random.Random(seed)
    chain = await serve(
        Sum, config + " instance_group [ { count: 2 kind: KIND_CPU } ]", max_batch_size=3
    )

    async def run(sequence):
        await asyncio.sleep(chance.random() * 0.3)
        total, length = 0, chance.randint(1, 6)
        for step in range(length):
            flags = (START if step == 0 else 0) | (END if step == length - 1 else 0)
            value = chance.randint(1, 9)
            total += value
            assert await y(ask(chain, sequence, value, flags)) == total
            await asyncio.sleep(chance.random() * 0.01)

    await asyncio.gather(*(run(number) for number in range(1, 101)))

    assert chain.in_flight == chain.pending == 0
    assert chain.statistics.fail.count == 0
