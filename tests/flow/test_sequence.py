"""Sequences: every request of one goes to the same place, in order; over virtual time."""

import asyncio
import random

import numpy as np
import pytest

import core
from core.errors import CoreError, Kind
from core.pipeline.batching.queue import QueuedRequest
from core.pipeline.sequence.slots import InstanceSlots, Sequence
from core.request import SEQUENCE_END, SEQUENCE_START, InferenceRequest
from core.tensor import Tensor

START, END = SEQUENCE_START, SEQUENCE_END


def control(name, kind, false_true="int32_false_true: [ 0, 1 ]"):
    return f'{{ name: "{name}" control [ {{ kind: CONTROL_SEQUENCE_{kind} {false_true} }} ] }}'


CONTROLS = (
    "control_input [ "
    + ", ".join(
        [
            control("START", "START"),
            control("END", "END"),
            control("READY", "READY"),
            control("CORRID", "CORRID", "data_type: TYPE_UINT64"),
        ]
    )
    + " ]"
)


def batching(strategy, idle_us=0, more=""):
    return (
        f"sequence_batching {{ {strategy} max_sequence_idle_microseconds: {idle_us} {CONTROLS} }}"
        f" {more}"
    )


DIRECT = batching("direct { }")
OLDEST = batching("oldest { max_candidate_sequences: 2 }")


class Sum(core.ModelInstance):
    """y is the sum of the sequence's x, after 10 ms. Notes (rows of correlation ids) of each batch."""

    def open(self):
        self.sums = {}

    async def execute(self, batch):
        ids = batch["CORRID"].ravel().tolist()
        ready = batch["READY"].ravel().tolist()
        self.model.recorder.batches.append(
            [i if r else None for i, r in zip(ids, ready, strict=True)]
        )
        await asyncio.sleep(0.010)
        y = np.zeros_like(batch["x"])
        for row, (key, start) in enumerate(zip(ids, batch["START"].ravel(), strict=True)):
            if ready[row]:
                self.sums[key] = (0 if start else self.sums[key]) + batch["x"][row, 0]
                y[row] = self.sums[key]
        return {"y": y}


def ask(chain, sequence, value, flags=0, rows=1):
    x = Tensor.of("x", np.full((rows, 1), value, np.float32))
    return chain.handler(InferenceRequest("m", {"x": x}, correlation_id=sequence, flags=flags))


async def y(reply):
    return (await reply).output("y").array[0, 0]


def refusal(chain, *args, **kwargs):
    with pytest.raises(CoreError) as error:
        ask(chain, *args, **kwargs)
    assert error.value.kind is Kind.INVALID
    return error.value.message


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


async def test_no_more_candidates_than_allowed_are_taken(serve):
    chain = await serve(Sum, OLDEST)

    replies = [ask(chain, sequence, sequence, START) for sequence in (1, 2, 3)]
    await asyncio.sleep(0.1)

    assert [reply.finished for reply in replies] == [True, True, False]


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


async def test_a_cancelled_end_frees_the_place(serve):
    chain = await serve(Sum, DIRECT, max_batch_size=1)
    running = ask(chain, 1, 1, START)
    end = ask(chain, 1, 1, END)
    waiting = ask(chain, 2, 3, START | END)

    end.cancel()

    await running
    assert await y(waiting) == 3


async def test_text_may_be_a_correlation_id(serve):
    text = (
        "sequence_batching { direct { } control_input [ "
        + ", ".join(
            [
                control("START", "START", "bool_false_true: [ false, true ]"),
                control("READY", "READY", "fp32_false_true: [ 0, 1 ]"),
                control("CORRID", "CORRID", "data_type: TYPE_STRING"),
            ]
        )
        + " ] }"
    )
    chain = await serve(Sum, text)

    await ask(chain, "my sequence", 1, START)

    assert chain.recorder.batches == [[b"my sequence"]]


class Controls(core.ModelInstance):
    """Notes the controls of each batch: name → datatype and values."""

    async def execute(self, batch):
        found = {name: batch[name] for name in batch if name != "x"}
        self.model.recorder.batches.append(
            {name: (str(array.dtype), array.ravel().tolist()) for name, array in found.items()}
        )
        return {"y": batch["x"]}


@pytest.mark.parametrize("strategy", ["direct { }", "oldest { max_candidate_sequences: 2 }"])
@pytest.mark.parametrize(
    "values,datatype,false,true",
    [
        ("int32_false_true: [ -1, 7 ]", "int32", -1, 7),
        ("fp32_false_true: [ 0.5, 2.5 ]", "float32", 0.5, 2.5),
        ("bool_false_true: [ true, false ]", "bool", True, False),
    ],
)
async def test_controls_have_the_values_of_their_configuration(
    serve, strategy, values, datatype, false, true
):
    kinds = ["START", "READY", "END"]
    inputs = ", ".join(control(kind, kind, values) for kind in kinds)
    chain = await serve(
        Controls, f"sequence_batching {{ {strategy} control_input [ {inputs} ] }}", max_batch_size=1
    )

    for flags in (START, 0, END):
        await ask(chain, 1, 1, flags)

    marks = [(true, true, false), (false, true, false), (false, true, true)]
    assert chain.recorder.batches == [
        {name: (datatype, [value]) for name, value in zip(kinds, found, strict=True)}
        for found in marks
    ]


@pytest.mark.parametrize(
    "datatype,numpy,given,seen",
    [
        ("UINT64", "uint64", 2**64 - 1, 2**64 - 1),
        ("INT64", "int64", 2**63 - 1, 2**63 - 1),
        ("UINT32", "uint32", 2**32 - 1, 2**32 - 1),
        ("INT32", "int32", 2**31 - 1, 2**31 - 1),
        ("UINT32", "uint32", 2**32 + 5, 5),  # the low bits, as Triton casts
    ],
)
async def test_a_correlation_id_has_the_datatype_of_its_control(
    serve, datatype, numpy, given, seen
):
    inputs = control("CORRID", "CORRID", f"data_type: TYPE_{datatype}")
    chain = await serve(
        Controls, f"sequence_batching {{ direct {{ }} control_input [ {inputs} ] }}"
    )

    await ask(chain, given, 1, START | END)

    assert chain.recorder.batches == [{"CORRID": (numpy, [seen])}]


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
