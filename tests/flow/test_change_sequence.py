"""Sequences of a model whose instances change: each stays on its instance, over virtual time."""

import asyncio
from random import Random

import numpy as np
import pytest
from flow.instance_groups import events, group, groups

from core.errors import CoreError
from core.pipeline.instances.rate_limiter import GLOBAL, RateLimiter
from core.request import SEQUENCE_END, SEQUENCE_START, InferenceRequest
from core.tensor import Tensor

START, END = SEQUENCE_START, SEQUENCE_END
DIRECT = "sequence_batching { direct { } max_sequence_idle_microseconds: 1000000 }"
OLDEST = (
    "sequence_batching { oldest { max_candidate_sequences: 2 } "
    "max_sequence_idle_microseconds: 1000000 }"
)
STATE = (
    'state [ { input_name: "in" output_name: "out" data_type: TYPE_FP32 dims: [ 1 ] initial_state '
    '{ name: "zero" data_type: TYPE_FP32 dims: [ 1 ] zero_data: true } } ]'
)


def ask(chain, value=1.0, sequence=0, flags=0):
    x = Tensor.of("x", np.full((1, 1), value, np.float32))
    return chain.handler(InferenceRequest("m", {"x": x}, correlation_id=sequence, flags=flags))


async def y(reply):
    return float((await reply).output("y").array.ravel()[0])


async def closed(chain, *names):
    """Instances have closed, as soon as they had answered."""
    await asyncio.sleep(0.001)
    assert {("close", name) for name in names} <= set(chain.recorder.batches)


ALONE = ""
BATCHED = "dynamic_batching { }"


@pytest.fixture
def count(recording):
    class Count(recording):
        """y is how many of its requests the sequence of each row has had here."""

        def open(self):
            super().open()
            self.seen = {}

        async def execute(self, batch):
            self.note("execute")
            await asyncio.sleep(0.010)
            found = []
            for request in batch.requests:
                key = request.correlation_id
                self.seen[key] = 1 if request.flags & START else self.seen.get(key, 0) + 1
                found.append([self.seen[key]])
            return {"y": np.array(found, np.float32)}

    return Count


@pytest.mark.parametrize("strategy", [DIRECT, OLDEST])
async def test_sequences_stay_where_they_are_also_on_an_instance_that_leaves(
    serve, strategy, change, count
):
    chain = await serve(count, strategy + groups(group(2)), max_batch_size=2)
    for sequence in (1, 2, 3, 4):
        assert await y(ask(chain, sequence=sequence, flags=START)) == 1
    running = [ask(chain, sequence=sequence) for sequence in (1, 2, 3, 4)]
    await asyncio.sleep(0.005)

    await change(chain, group(1))
    newcomer = ask(chain, sequence=5, flags=START)  # there is no place for it yet

    assert [await y(reply) for reply in running] == [2, 2, 2, 2]
    assert [await y(ask(chain, sequence=i)) for i in (1, 2, 3, 4)] == [3, 3, 3, 3]
    assert chain.pending == 1
    chain.recorder.batches.clear()
    for sequence in (1, 2, 3, 4):
        assert await y(ask(chain, sequence=sequence, flags=END)) == 4
    assert await y(newcomer) == 1
    await closed(chain, "g_1")
    assert await y(ask(chain, sequence=5, flags=END)) == 2
    await chain.close()


@pytest.mark.parametrize("strategy", [DIRECT, OLDEST])
async def test_new_instances_give_places_to_sequences_that_wait(serve, strategy, prepare, count):
    chain = await serve(count, strategy + groups(group(1)), max_batch_size=2)
    prepared = await prepare(chain, group(2))
    replies = [ask(chain, sequence=sequence, flags=START) for sequence in (1, 2, 3, 4)]
    await asyncio.sleep(0.1)
    assert chain.pending == 2

    prepared.commit()

    assert [await y(reply) for reply in replies] == [1, 1, 1, 1]
    assert [await y(ask(chain, sequence=i)) for i in (1, 2, 3, 4)] == [2, 2, 2, 2]
    await chain.close()


async def test_a_leaving_instance_does_not_wait_for_idle_sequences(serve, change, count):
    chain = await serve(count, DIRECT + groups(group(2)), max_batch_size=1)
    for sequence in (1, 2):
        await ask(chain, sequence=sequence, flags=START)

    await change(chain, group(1))
    await asyncio.sleep(1.5)

    await closed(chain, "g_1")
    await chain.close()


async def test_implicit_state_stays_with_its_sequence(serve, prepare, recording):
    class Sum(recording):
        async def execute(self, batch):
            await asyncio.sleep(0.010)
            total = batch["in"] + batch["x"]
            return {"y": total, "out": total}

    config = OLDEST.replace("} max", "} " + STATE + " max") + groups(group(2))
    chain = await serve(Sum, config, max_batch_size=2)
    prepared = await prepare(chain, group(1), group(1, "new", "kind: KIND_MODEL"))
    for sequence in (1, 2, 3, 4):
        await ask(chain, 10 * sequence, sequence, START)

    prepared.commit()

    assert [await y(ask(chain, 1, i, END)) for i in (1, 2, 3, 4)] == [11, 21, 31, 41]
    await closed(chain, "g_1")
    await chain.close()


async def test_sequences_without_a_slot_are_refused_when_the_last_instance_has_left_service(
    serve, change, count
):
    chain = await serve(count, DIRECT + groups(group(1)), max_batch_size=1)
    await ask(chain, sequence=1, flags=START)
    waits = ask(chain, sequence=2, flags=START)
    await asyncio.sleep(0)

    await change(chain, group(1, more="passive: true"))
    await asyncio.sleep(1.5)  # the other sequence has been idle for too long

    with pytest.raises(CoreError, match="all are passive"):
        await waits
    await chain.close()


async def test_a_chain_closes_with_instances_that_still_leave(serve, change, count):
    chain = await serve(count, DIRECT + groups(group(2)), max_batch_size=1)
    for sequence in (1, 2):
        await ask(chain, sequence=sequence, flags=START)
    await change(chain, group(1))

    await chain.drain()
    await chain.close()

    assert events(chain, "close") == ["g_0", "g_1"]


@pytest.mark.parametrize("config", [ALONE, BATCHED, DIRECT, OLDEST])
@pytest.mark.parametrize("limited", [False, True], ids=["free", "limited"])
@pytest.mark.parametrize("seed", range(4))
async def test_whatever_changes_while_they_run_every_request_is_answered_once(
    serve, config, seed, limited, change, count
):
    random = Random(seed)
    limiter = RateLimiter({"R": {GLOBAL: 3}}) if limited else None
    kinds = ["", "kind: KIND_MODEL"]
    if limited:
        kinds += [f'rate_limiter {{ resources [ {{ name: "R" count: {n} }} ] }}' for n in (1, 2, 3)]
    patient = config.replace("1000000", "60000000")  # no sequence ends by timeout
    chain = await serve(count, patient + groups(group(1)), max_batch_size=2, limiter=limiter)
    stateful = config in (DIRECT, OLDEST)
    counts = {}  # of the sequences that go on
    expected = []

    for step in range(300):
        await asyncio.sleep(random.choice([0, 0, 0, 0.004, 0.010]))
        if random.random() < 0.1:
            wanted = [
                group(random.randint(1, 4), name, random.choice(kinds))
                for name in random.sample(["a", "b", "c"], random.randint(1, 2))
            ]
            await change(chain, *wanted)
        elif not stateful:
            expected.append((ask(chain, sequence=step + 1, flags=START), 1))
        else:
            sequence = random.choice([step + 1000, *counts])
            flags = 0 if sequence in counts else START
            counts[sequence] = counts.get(sequence, 0) + 1
            ends = random.random() < 0.2 or len(counts) > 5
            reply = ask(chain, sequence=sequence, flags=flags | (END if ends else 0))
            expected.append((reply, counts[sequence]))
            if ends:
                del counts[sequence]
    for sequence in counts:  # so that waiting sequences get a slot
        expected.append((ask(chain, sequence=sequence, flags=END), counts[sequence] + 1))

    assert [await y(reply) for reply, _ in expected] == [count for _, count in expected]
    assert chain.statistics.inference_count == len(expected)
    await chain.drain()
    await chain.close()
    opened = [name for event, name in chain.recorder.batches if event == "open"]
    assert sorted(opened) == events(chain, "close")
