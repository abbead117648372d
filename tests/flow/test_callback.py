"""Instances that begin one batch before another is done."""

import asyncio

import numpy as np
import pytest

import core
from core.errors import CoreError, Fatal, Kind
from core.request import InferenceRequest
from core.tensor import Tensor


class Ahead(core.ModelInstance):
    """y = x, after 10 ms; the request "fatal" ends the instance."""

    placement = "callback"
    ahead = 2

    def begin(self, batch, done):
        self.model.recorder.batches.append([request.id for request in batch.requests])
        self.loop.call_later(0.010, self.end, batch, done)

    def end(self, batch, done):
        if batch.requests[0].id == "fatal":
            done(Fatal("the device is gone"))
        else:
            batch.respond(0, {"y": batch["x"]})
            done(None)


def ask(chain, id):
    x = Tensor.of("x", np.zeros((1, 1), np.float32))
    return chain.handler(InferenceRequest("m", {"x": x}, id=id))


@pytest.mark.parametrize("begun", [["fatal"], ["fatal", "other"]])
async def test_a_fatal_error_takes_an_instance_out_that_could_begin_more(serve, begun):
    chain = await serve(Ahead)
    replies = [ask(chain, id) for id in begun]
    await asyncio.sleep(0.020)

    with pytest.raises(CoreError, match="the device is gone"):
        await replies[0]
    for reply in replies[1:]:
        await reply
    with pytest.raises(CoreError, match="no instance of the model is left") as error:
        await ask(chain, "next")

    assert error.value.kind is Kind.UNAVAILABLE
    assert chain.recorder.batches == [[id] for id in begun]
    assert not chain.ready
