"""Batches, where it matters what has happened while they were waited for; over virtual time."""

import asyncio

import numpy as np

import core
from core.request import InferenceRequest
from core.tensor import Tensor


class Echo(core.ModelInstance):
    """y = x, after 10 ms."""

    async def execute(self, batch):
        self.model.recorder.batches.append([request.id for request in batch.requests])
        await asyncio.sleep(0.010)
        return {"y": batch["x"]}


class Quick(core.ModelInstance):
    """y = x, at once; for a request named "late" 10 ms after its execution."""

    placement = "inline"

    def execute(self, batch):
        if batch.requests[0].id != "late":
            return {"y": batch["x"]}
        batch.defer(0)
        outputs = {"y": batch["x"]}
        asyncio.get_running_loop().call_later(0.010, batch.respond, 0, outputs)


def ask(chain, id="", rows=1):
    shape = (rows, 1) if chain.signature.max_batch_size else (1,)
    x = Tensor.of("x", np.zeros(shape, np.float32))
    return chain.handler(InferenceRequest("m", {"x": x}, id=id))


async def test_waiting_requests_may_form_a_batch_after_a_cancellation(serve):
    chain = await serve(
        Echo,
        "dynamic_batching { preferred_batch_size: [ 2, 6 ] max_queue_delay_microseconds: 500000 }",
    )
    wide = ask(chain, "wide", rows=3)
    rest = [ask(chain, id) for id in "ab"]
    await asyncio.sleep(0.001)
    assert chain.recorder.batches == []

    wide.cancel()
    await asyncio.sleep(0.001)

    assert chain.recorder.batches == [["a", "b"]]
    for reply in rest:
        await reply


async def test_a_request_sent_by_a_listener_keeps_the_order_of_responses(serve):
    chain = await serve(Quick, "dynamic_batching { preserve_ordering: true }", max_batch_size=0)
    order = []

    def heard(item, final):
        order.append("first")
        ask(chain).listen(lambda item, final: order.append("third"))

    ask(chain, "late").listen(heard)
    ask(chain).listen(lambda item, final: order.append("second"))
    await asyncio.sleep(0.020)

    assert order == ["first", "second", "third"]
    assert chain.in_flight == 0


class Kept(core.ModelInstance):
    """y = x + 1 from memory of its own. Keeps what it has received."""

    placement = "inline"

    def execute(self, batch):
        x = batch["x"]
        y = x + 1
        self.model.recorder.batches.append((x, y))
        return {"y": y}


async def test_rows_that_a_step_returned_together_reach_the_next_step_without_a_copy(serve):
    first = await serve(
        Kept, "dynamic_batching { preferred_batch_size: [ 3 ] max_queue_delay_microseconds: 1000 }"
    )
    second = await serve(
        Kept, "dynamic_batching { preferred_batch_size: [ 3 ] max_queue_delay_microseconds: 1000 }"
    )

    answers = await asyncio.gather(ask(first, rows=1), ask(first, rows=2))
    rows = [answer.output("y").renamed("x") for answer in answers]
    between = await asyncio.gather(*(second.handler(InferenceRequest("m", {"x": x})) for x in rows))
    backwards = await asyncio.gather(
        *(second.handler(InferenceRequest("m", {"x": x})) for x in reversed(rows))
    )

    (_, given), (taken, _), (copied, _) = first.recorder.batches + second.recorder.batches
    assert np.shares_memory(given, taken) and taken.shape == (3, 1)
    assert not taken.flags.writeable
    assert not np.shares_memory(given, copied) and copied.shape == (3, 1)
    for answer in (*between, *backwards):
        assert (answer.output("y").array == 2).all()
