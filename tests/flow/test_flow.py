"""One request's way through the whole pipeline to its answers, with batching.

Instances are coroutines that sleep in virtual time, so every test determines the exact times.
"""

import asyncio
import random

import numpy as np
import pytest
from flow.doubling import BATCHING, Double, ask, y

import core
from core.errors import CoreError
from core.request import RequestedOutput


async def test_a_request_gets_its_answer(serve):
    chain = await serve(Double)

    response = await ask(chain, 1, 2, id="a")

    assert y(response) == [[2, 4]]
    assert (response.model_name, response.model_version, response.id) == ("m", 1, "a")


async def test_waiting_requests_form_one_batch(serve):
    chain = await serve(Double, BATCHING)
    first = ask(chain, 0, id="first")
    await asyncio.sleep(0.001)

    rest = [ask(chain, number, id=str(number)) for number in range(10)]
    answers = [y(await reply) for reply in [first, *rest]]

    assert chain.recorder.batches == [["first"], list("01234567"), list("89")]
    assert answers == [[[0]], *[[[2 * number]] for number in range(10)]]


async def test_requests_of_one_loop_iteration_form_one_batch(serve):
    chain = await serve(Double, BATCHING)

    replies = [ask(chain, number, id=str(number)) for number in range(3)]
    for reply in replies:
        await reply

    assert chain.recorder.batches == [list("012")]


async def test_rows_of_two_requests_do_not_mix(serve):
    chain = await serve(Double, BATCHING)

    three, two = ask(chain, 1, 2, rows=3), ask(chain, 5, 6, rows=2)

    assert y(await three) == [[2, 4]] * 3
    assert y(await two) == [[10, 12]] * 2


async def test_requests_of_different_shape_run_in_different_batches(serve):
    chain = await serve(Double, BATCHING)

    replies = [ask(chain, *[1] * length, id=str(length)) for length in (1, 1, 2, 1)]
    for reply in replies:
        await reply

    assert chain.recorder.batches == [["1", "1"], ["2"], ["1"]]


async def test_without_batching_each_request_runs_alone(serve):
    chain = await serve(Double)

    for reply in [ask(chain, 1, id=str(number)) for number in range(3)]:
        await reply

    assert chain.recorder.batches == [["0"], ["1"], ["2"]]


async def test_two_instances_work_at_the_same_time(serve):
    chain = await serve(Double, "instance_group [ { count: 2 kind: KIND_CPU } ]")
    loop = asyncio.get_running_loop()
    start = loop.time()

    for reply in [ask(chain, 1) for _ in range(4)]:
        await reply

    assert loop.time() - start == pytest.approx(0.020, abs=0.001)


async def test_a_request_waits_for_company_no_longer_than_the_delay(serve):
    chain = await serve(Double, "dynamic_batching { max_queue_delay_microseconds: 5000 }")
    loop = asyncio.get_running_loop()
    start = loop.time()

    early = ask(chain, 1, id="early")
    await asyncio.sleep(0.004)
    late = ask(chain, 2, id="late")
    await early, await late

    assert chain.recorder.batches == [["early", "late"]]
    assert loop.time() - start == pytest.approx(0.015, abs=0.001)


async def test_a_full_batch_does_not_wait_for_the_delay(serve):
    chain = await serve(Double, "dynamic_batching { max_queue_delay_microseconds: 500000 }")
    loop = asyncio.get_running_loop()
    start = loop.time()

    await ask(chain, 1, rows=8)

    assert loop.time() - start < 0.02


async def test_preserve_ordering_keeps_the_order_of_arrival(serve):
    class Backwards(Double):
        async def execute(self, batch):
            await asyncio.sleep(0.1 if batch["x"].flat[0] == 1 else 0.01)
            return {"y": batch["x"]}

    chain = await serve(
        Backwards,
        "dynamic_batching { preserve_ordering: true } instance_group [ { count: 2 kind: KIND_CPU } ]",
    )
    order = []

    slow = ask(chain, 1)
    await asyncio.sleep(0.001)
    quick = ask(chain, 2)
    slow.listen(lambda item, final: order.append("slow"))
    quick.listen(lambda item, final: order.append("quick"))
    await asyncio.sleep(0.2)

    assert order == ["slow", "quick"]


async def test_only_wanted_outputs_come_back(serve):
    chain = await serve(Double)

    response = await ask(chain, 0.5, 0.25, outputs=(RequestedOutput("y", class_count=1),))

    assert response.output("y").array.tolist() == [[b"1.000000:0"]]


async def test_a_decoupled_model_sends_many_answers(serve):
    class Counting(core.ModelInstance):
        placement = "inline"

        def execute(self, batch):
            for number in range(3):
                batch.respond(0, {"y": np.array([number], np.float32)}, final=False)
            batch.finish(0)

    chain = await serve(Counting, max_batch_size=0, decoupled=True)

    answers = [y(response) async for response in ask(chain, 1)]

    assert answers == [[0], [1], [2]]
    assert chain.statistics.success.count == 1


async def test_a_stream_of_an_instance_is_a_decoupled_model(serve):
    class Streaming(core.ModelInstance):
        placement = "inline"

        def stream(self, request):
            for value in request.inputs["x"].array:
                yield {"y": np.array([value], np.float32)}

    chain = await serve(Streaming, max_batch_size=0, decoupled=True)

    assert [y(r) async for r in ask(chain, 3, 4)] == [[3], [4]]


async def test_a_deferred_answer_may_come_after_execute(serve):
    class Later(core.ModelInstance):
        placement = "inline"

        def execute(self, batch):
            batch.defer(0)
            asyncio.get_running_loop().call_later(0.05, batch.respond, 0, {"y": batch["x"]})

    chain = await serve(Later)

    assert y(await ask(chain, 3)) == [[3]]


async def test_hundreds_of_inline_requests_do_not_nest(serve):
    class Inline(core.ModelInstance):
        placement = "inline"

        def execute(self, batch):
            return {"y": batch["x"]}

    chain = await serve(Inline, BATCHING)

    replies = [ask(chain, *[1] * (1 + number % 2)) for number in range(3000)]

    assert sum([len(y(await reply)[0]) for reply in replies]) == 4500


async def test_times_of_a_request_add_up(serve):
    chain = await serve(Double)

    for reply in [ask(chain, 1), ask(chain, 1)]:
        await reply

    found = chain.statistics
    assert found.queue.ns == pytest.approx(10e6, rel=0.01)
    assert found.compute_infer.ns == pytest.approx(20e6, rel=0.01)
    assert found.success.ns == pytest.approx(30e6, rel=0.01)
    assert found.success.count == found.queue.count == found.compute_infer.count == 2
    assert list(found.batch_sizes) == [1]


@pytest.mark.parametrize("seed", range(10))
async def test_random_traffic_loses_and_mixes_no_request(serve, seed):
    """Random arrivals, sizes, shapes, failures and cancellations over virtual time."""
    chance = random.Random(seed)
    chain = await serve(
        Double,
        "dynamic_batching { max_queue_delay_microseconds: 3000 preferred_batch_size: [ 2, 5 ] }"
        "instance_group [ { count: 2 kind: KIND_CPU } ]",
    )
    outcomes = []

    async def client(number):
        await asyncio.sleep(chance.random() * 0.5)
        rows, length = chance.randint(1, 8), chance.randint(1, 2)
        value = -1.0 if chance.random() < 0.05 else float(number)
        reply = ask(chain, *[value] * length, rows=rows, id=str(number))
        if chance.random() < 0.1:
            asyncio.get_running_loop().call_later(chance.random() * 0.02, reply.cancel)
        try:
            assert y(await reply) == [[2 * value] * length] * rows
            # A response to a cancelled request is no success.
            outcomes.append("late" if reply.request.cancelled else "answered")
        except CoreError as error:
            outcomes.append(error.kind.name)

    await asyncio.gather(*(client(number) for number in range(400)))

    assert len(outcomes) == 400
    found = chain.statistics
    assert found.success.count + found.fail.count == 400
    assert found.success.count >= outcomes.count("answered")
    assert chain.in_flight == chain.pending == 0
    assert max(found.batch_sizes) <= 8
