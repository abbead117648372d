"""Requests that ask for another execution, over virtual time."""

import asyncio

import numpy as np
import pytest

import core
from core.errors import CoreError, Kind
from core.request import SEQUENCE_END, InferenceRequest
from core.tensor import Tensor

ITERATIVE = "sequence_batching { iterative_sequence: true }"


class Countdown(core.ModelInstance):
    """Answers x - 1, x - 2, … 0, one answer for each execution of 10 ms."""

    def open(self):
        self.left = {}

    async def execute(self, batch):
        await asyncio.sleep(0.010)
        for i, request in enumerate(batch.requests):
            key = request.correlation_id or request.id
            left = self.left.pop(key, int(request.inputs["x"].array.flat[0])) - 1
            self.model.recorder.batches.append((key, request.flags))
            y = np.array([left], np.float32)
            if left > 0:
                self.left[key] = left
                batch.respond(i, {"y": y}, final=False)
                batch.reschedule(i)
            else:
                batch.respond(i, {"y": y})


class Twice(core.ModelInstance):
    """Answers at the second execution."""

    async def execute(self, batch):
        self.model.recorder.batches.append(len(batch))
        for i, request in enumerate(batch.requests):
            if self.model.recorder.batches.count(len(batch)) < 2:
                batch.reschedule(i)
            else:
                batch.respond(i, {"y": request.inputs["x"].array})


def ask(chain, value, **kwargs):
    x = np.array([value], np.float32)
    if chain.signature.max_batch_size:
        x = x.reshape(1, 1)
    return chain.handler(InferenceRequest("m", {"x": Tensor.of("x", x)}, **kwargs))


def y(response):
    return response.output("y").array.ravel().tolist()


async def test_an_iterative_request_runs_until_it_is_not_rescheduled(serve):
    chain = await serve(Countdown, ITERATIVE, max_batch_size=0, decoupled=True)

    answers = [y(response) async for response in ask(chain, 4)]

    assert answers == [[3], [2], [1], [0]]
    assert [flags for _, flags in chain.recorder.batches] == [1, 0, 0, 0]
    found = chain.statistics
    assert (found.execution_count, found.success.count, found.inference_count) == (4, 1, 1)
    assert chain.in_flight == chain.pending == 0


async def test_each_iterative_request_is_a_separate_sequence(serve):
    chain = await serve(
        Countdown, ITERATIVE + " instance_group [ { count: 2 kind: KIND_CPU } ]",
        max_batch_size=0, decoupled=True,
    )  # fmt: skip

    async def collect(reply):
        return [y(response)[0] async for response in reply]

    found = await asyncio.gather(*(collect(ask(chain, n)) for n in (2, 3, 4, 1)))

    assert found == [[1, 0], [2, 1, 0], [3, 2, 1, 0], [0]]
    assert len({key for key, _ in chain.recorder.batches}) == 4


async def test_an_iterative_request_brings_no_correlation_id(serve):
    chain = await serve(Countdown, ITERATIVE, max_batch_size=0, decoupled=True)

    with pytest.raises(CoreError, match="must not specify a correlation ID") as error:
        ask(chain, 1, correlation_id=7)
    assert error.value.kind is Kind.INVALID


async def test_a_cancelled_request_is_not_rescheduled_and_frees_its_slot(serve):
    chain = await serve(Countdown, ITERATIVE, max_batch_size=0, decoupled=True)
    reply, other = ask(chain, 1000), ask(chain, 1)
    await asyncio.sleep(0.025)

    reply.cancel()

    assert [y(response) async for response in other] == [[0]]
    assert chain.in_flight == chain.pending == 0
    assert chain.statistics.failures["CANCELED"] == 1


async def test_iterative_requests_that_wait_for_a_slot_can_be_cancelled(serve):
    chain = await serve(Countdown, ITERATIVE, max_batch_size=0, decoupled=True)
    replies = [ask(chain, 3) for _ in range(3)]
    await asyncio.sleep(0.005)

    replies[1].cancel()
    replies[2].cancel()

    assert len([response async for response in replies[0]]) == 3
    assert [y(response) async for response in ask(chain, 1)] == [[0]]
    assert chain.in_flight == chain.pending == 0


@pytest.mark.parametrize("batching", ["", "dynamic_batching { }"])
async def test_an_ordinary_request_may_ask_for_another_execution_too(serve, batching):
    chain = await serve(Twice, batching)

    assert y(await ask(chain, 5)) == [5]
    assert chain.recorder.batches == [1, 1]
    assert chain.statistics.success.count == 1


async def test_the_end_flag_of_an_iterative_request_has_no_effect(serve):
    chain = await serve(Countdown, ITERATIVE, decoupled=True)

    reply = ask(chain, 3, flags=SEQUENCE_END)

    assert [y(response) async for response in reply] == [[2], [1], [0]]
    assert chain.in_flight == chain.pending == 0
