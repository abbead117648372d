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
