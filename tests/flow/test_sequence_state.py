"""Implicit state: tensors that the server keeps for a sequence between its requests; over virtual time."""

import asyncio
import random

import numpy as np
import pytest

import core
from core.errors import CoreError, internal
from core.request import SEQUENCE_END, SEQUENCE_START, InferenceRequest, RequestedOutput
from core.tensor import Tensor

START, END = SEQUENCE_START, SEQUENCE_END

SUM = 'state { input_name: "before" output_name: "after" data_type: TYPE_FP32 dims: [ 1 ] }'
SEEN = 'state { input_name: "old" output_name: "new" data_type: TYPE_FP32 dims: [ -1 ] }'
READY = (
    'control_input { name: "READY" control { kind: CONTROL_SEQUENCE_READY '
    "int32_false_true: [ 0, 1 ] } }"
)


def batching(strategy="direct { }", states=SUM, more=""):
    return f"sequence_batching {{ {strategy} {READY} {states} {more} }}"


DIRECT = batching()
OLDEST = batching("oldest { max_candidate_sequences: 3 }")


class Sum(core.ModelInstance):
    """y is the sum of the sequence's x, which only the server remembers; after 10 ms."""

    async def execute(self, batch):
        self.model.recorder.batches.append(batch["before"].ravel().tolist())
        await asyncio.sleep(0.010)
        after = batch["before"] + batch["x"]
        return {"y": after, "after": after}


class Collect(core.ModelInstance):
    """y is the earlier input of the sequence, and its state grows by each x."""

    async def execute(self, batch):
        await asyncio.sleep(0.010)
        self.model.recorder.batches.append(batch["old"].tolist())
        return {"y": batch["old"], "new": np.concatenate([batch["old"], batch["x"]], 1)}


def request(sequence, value, flags=0, outputs=()):
    x = Tensor.of("x", np.full((1, 1), value, np.float32))
    return InferenceRequest(
        "m",
        {"x": x},
        correlation_id=sequence,
        flags=flags,
        outputs=tuple(RequestedOutput(name) for name in outputs),
    )


def ask(chain, *args, **kwargs):
    return chain.handler(request(*args, **kwargs))


async def y(reply):
    return (await reply).output("y").array.ravel().tolist()


@pytest.mark.parametrize("config", [DIRECT, OLDEST])
async def test_a_request_gets_the_state_of_the_previous_one(serve, config):
    chain = await serve(Sum, config)

    replies = [ask(chain, 7, value, START if value == 1 else 0) for value in (1, 2, 3)]
    replies.append(ask(chain, 7, 4, END))

    assert [await y(reply) for reply in replies] == [[1], [3], [6], [10]]


@pytest.mark.parametrize("config", [DIRECT, OLDEST])
async def test_states_of_two_sequences_do_not_mix(serve, config):
    chain = await serve(Sum, config, max_batch_size=3)
    for sequence, value in ((1, 10), (2, 20), (3, 30)):
        ask(chain, sequence, value, START)
    await asyncio.sleep(0.05)
    ask(chain, 3, 3)  # the others wait for it

    together = [ask(chain, 1, 1), ask(chain, 2, 2)]

    assert [await y(reply) for reply in together] == [[11], [22]]
    assert chain.recorder.batches[-1] == [10, 20]


async def test_a_state_is_no_output(serve):
    chain = await serve(Sum, DIRECT)

    response = await ask(chain, 1, 1, START)

    assert [tensor.name for tensor in response.outputs] == ["y"]
    assert list(chain.signature.inputs) == ["x"]


async def test_a_state_is_no_input_that_a_client_could_send(serve):
    chain = await serve(Sum, DIRECT)
    asked = request(1, 1, START)
    asked.inputs["before"] = Tensor.of("before", np.ones((1, 1), np.float32))

    with pytest.raises(CoreError, match="expected 1 inputs but got 2 inputs"):
        chain.handler(asked)


async def test_a_state_that_is_listed_as_an_output_is_also_sent(serve):
    chain = await serve(Sum, DIRECT + ' output { name: "after" data_type: TYPE_FP32 dims: [ 1 ] }')

    response = await ask(chain, 1, 3, START)

    assert response.output("after").array.tolist() == [[3]]
    assert await y(ask(chain, 1, 4)) == [7]


async def test_the_state_is_renewed_whatever_outputs_a_client_wants(serve):
    chain = await serve(Sum, DIRECT + ' output { name: "after" data_type: TYPE_FP32 dims: [ 1 ] }')

    await ask(chain, 1, 3, START, outputs=["y"])

    assert await y(ask(chain, 1, 4)) == [7]


async def test_start_in_the_middle_forgets(serve):
    chain = await serve(Sum, DIRECT)

    replies = [ask(chain, 1, value, flags) for value, flags in ((5, START), (6, 0), (7, START))]

    assert [await y(reply) for reply in replies] == [[5], [11], [7]]


async def test_a_reused_id_starts_a_new_sequence(serve):
    chain = await serve(Sum, DIRECT)

    replies = [ask(chain, 1, 5, START), ask(chain, 1, 1, END), ask(chain, 1, 7, START)]

    assert [await y(reply) for reply in replies] == [[5], [6], [7]]


async def test_the_state_of_an_idle_sequence_is_dropped(serve):
    chain = await serve(Sum, batching(more="max_sequence_idle_microseconds: 200000"))
    await ask(chain, 1, 5, START)
    await asyncio.sleep(0.3)

    assert await y(ask(chain, 1, 7, START)) == [7]


async def test_a_failed_request_does_not_change_the_state(serve):
    class Fragile(Sum):
        async def execute(self, batch):
            outputs = await super().execute(batch)
            if batch["x"][0, 0] < 0:
                raise RuntimeError("negative")
            return outputs

    chain = await serve(Fragile, DIRECT)
    replies = [ask(chain, 1, 5, START), ask(chain, 1, -3), ask(chain, 1, 2)]

    assert await y(replies[0]) == [5]
    with pytest.raises(CoreError, match="negative"):
        await replies[1]
    assert await y(replies[2]) == [7]


async def test_only_successful_requests_of_a_batch_renew_their_state(serve):
    class Picky(core.ModelInstance):
        async def execute(self, batch):
            await asyncio.sleep(0.010)
            for i, each in enumerate(batch.requests):
                x, before = each.inputs["x"].array, each.inputs["before"].array
                if x[0, 0] < 0:
                    batch.fail(i, internal("negative"))
                else:
                    batch.respond(i, {"y": before + x, "after": before + x})

    chain = await serve(Picky, DIRECT)
    for sequence in (1, 2):
        ask(chain, sequence, 10, START)
    await asyncio.sleep(0.05)

    good, bad = ask(chain, 1, 1), ask(chain, 2, -1)

    assert await y(good) == [11]
    with pytest.raises(CoreError):
        await bad
    assert await y(ask(chain, 2, 5)) == [15]


async def test_a_request_cancelled_in_the_queue_does_not_change_the_state(serve):
    chain = await serve(Sum, DIRECT)
    ask(chain, 1, 5, START)
    ask(chain, 1, 100).cancel()

    assert await y(ask(chain, 1, 2)) == [7]


async def test_a_response_without_the_state_does_not_change_it(serve):
    class Forgetful(Sum):
        async def execute(self, batch):
            outputs = await super().execute(batch)
            return outputs if batch["x"][0, 0] < 10 else {"y": outputs["y"]}

    chain = await serve(Forgetful, DIRECT)

    replies = [ask(chain, 1, value, flags) for value, flags in ((5, START), (10, 0), (2, 0))]

    assert [await y(reply) for reply in replies] == [[5], [15], [7]]


async def test_a_state_of_the_wrong_shape_fails_its_request_only(serve):
    class Wide(Sum):
        async def execute(self, batch):
            outputs = await super().execute(batch)
            wide = batch["x"][0, 0] == 9
            return {**outputs, "after": np.zeros((1, 2), np.float32)} if wide else outputs

    chain = await serve(Wide, DIRECT, max_batch_size=1)
    replies = [ask(chain, 1, 5, START), ask(chain, 1, 9), ask(chain, 1, 2)]

    with pytest.raises(CoreError) as error:
        await replies[1]
    assert error.value.message == (
        "model 'm' gave state 'after' as FP32 with shape [1, 2] for one request, its configuration "
        "says FP32 with shape [1, 1]"
    )
    assert await y(replies[2]) == [7]


async def test_a_state_of_any_size_may_grow(serve):
    chain = await serve(Collect, batching(states=SEEN))

    replies = [ask(chain, 1, value, START if value == 1 else 0) for value in (1, 2, 3)]

    assert [await y(reply) for reply in replies] == [[0], [0, 1], [0, 1, 2]]


@pytest.mark.parametrize("strategy", ["direct { }", "oldest { max_candidate_sequences: 3 }"])
async def test_sequences_with_states_of_different_shapes_share_no_batch(serve, strategy):
    chain = await serve(Collect, batching(strategy, SEEN))
    for sequence, value, flags in ((1, 1, START), (1, 2, 0), (2, 3, START), (3, 4, START)):
        await ask(chain, sequence, value, flags)
    ask(chain, 3, 0)  # the others wait for it

    replies = [ask(chain, 1, 0), ask(chain, 2, 0)]

    assert [await y(reply) for reply in replies] == [[0, 1, 2], [0, 3]]
    assert [len(batch[0]) for batch in chain.recorder.batches[-2:]] == [3, 2]


async def test_a_row_that_only_fills_has_an_empty_state(serve):
    chain = await serve(Sum, DIRECT, max_batch_size=2)
    for sequence in (1, 2):
        ask(chain, sequence, 5, START)
    await asyncio.sleep(0.05)

    await ask(chain, 2, 1)

    assert chain.recorder.batches[-1] == [0, 5]


async def test_a_model_without_a_batch_dimension_keeps_states_too(serve):
    chain = await serve(Sum, DIRECT, max_batch_size=0)

    def asked(value, flags):
        x = Tensor.of("x", np.full((1,), value, np.float32))
        return chain.handler(InferenceRequest("m", {"x": x}, correlation_id=1, flags=flags))

    assert [await y(asked(2, START)), await y(asked(3, END))] == [[2], [5]]


async def test_a_deferred_answer_is_waited_for(serve):
    """The instance is free before the answer is there, but the state is not."""

    class Late(core.ModelInstance):
        async def execute(self, batch):
            self.model.recorder.batches.append(batch["before"].ravel().tolist())
            for i in range(len(batch)):
                batch.defer(i)
                after = batch["before"][i : i + 1] + batch["x"][i : i + 1]
                asyncio.get_running_loop().call_later(
                    0.1, batch.respond, i, {"y": after, "after": after}
                )

    chain = await serve(Late, DIRECT)

    replies = [ask(chain, 1, value, START if value == 1 else 0) for value in (1, 2, 3)]

    assert [await y(reply) for reply in replies] == [[1], [3], [6]]
    assert chain.recorder.batches == [[0], [1], [3]]


async def test_an_instance_that_takes_batches_ahead_gets_one_request_of_a_sequence(serve):
    class Ahead(core.ModelInstance):
        placement = "callback"
        ahead = 4

        def begin(self, batch, done):
            self.model.recorder.batches.append(batch["before"].ravel().tolist())
            after = batch["before"] + batch["x"]

            def end():
                batch.respond(0, {"y": after, "after": after})
                done(None)

            self.loop.call_later(0.010, end)

    chain = await serve(Ahead, DIRECT, max_batch_size=1)

    replies = [ask(chain, 1, value, START if value == 1 else 0) for value in (1, 2, 3)]

    assert [await y(reply) for reply in replies] == [[1], [3], [6]]


async def test_the_executions_of_an_iterative_request_hand_on_the_state(serve):
    class Twice(core.ModelInstance):
        async def execute(self, batch):
            await asyncio.sleep(0.001)
            after = batch["before"] + batch["x"]
            for i in range(len(batch)):
                done = after[i, 0] >= 3
                batch.respond(i, {"y": after[i : i + 1], "after": after[i : i + 1]}, final=done)
                if not done:
                    batch.reschedule(i)

    config = batching(more="iterative_sequence: true")
    chain = await serve(Twice, config, decoupled=True)

    reply = ask(chain, 0, 1)

    assert [r.output("y").array.item() async for r in reply if r.outputs] == [1, 2, 3]


async def test_a_model_cannot_change_a_state_in_its_place(serve):
    class Writer(Sum):
        async def execute(self, batch):
            with pytest.raises(ValueError, match="read-only"):
                batch["before"][...] = 1
            return await super().execute(batch)

    chain = await serve(Writer, DIRECT, max_batch_size=1)

    assert [await y(ask(chain, 1, 1, START)), await y(ask(chain, 1, 1))] == [[1], [2]]


async def test_a_kept_row_does_not_keep_its_batch(serve):
    chain = await serve(Sum, DIRECT)
    asked = request(2, 1)
    for sequence in (1, 2):
        ask(chain, sequence, 1, START)
    await asyncio.sleep(0.05)
    for reply in [ask(chain, 1, 1), chain.handler(asked)]:
        await reply
    last = request(2, 1)
    await chain.handler(last)

    assert last.inputs["before"].array.base is None or last.inputs["before"].array.base.size == 1


@pytest.mark.parametrize("config", [DIRECT, OLDEST])
@pytest.mark.parametrize("seed", range(3))
async def test_random_sequences_keep_their_own_sums(serve, config, seed):
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
            assert await y(ask(chain, sequence, value, flags)) == [total]
            await asyncio.sleep(chance.random() * 0.01)

    await asyncio.gather(*(run(number) for number in range(1, 61)))

    assert chain.in_flight == chain.pending == 0
