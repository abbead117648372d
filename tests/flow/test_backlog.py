"""A model that answers faster than its client reads waits for it, and not for ever."""

import asyncio

import numpy as np
import pytest

import core
from core import CoreError, InferenceRequest, Kind, Tensor
from core.backlog import MOST_ANSWERS, STALLED_S

A_MILLION = 1_000_000
AT_ONCE = 10  # answers between two waits of the model


class Counting(core.ModelInstance):
    """Sends `x` responses, and waits for its client."""

    placement = "inline"

    def open(self):
        self.model.recorder.sent = 0

    async def execute(self, batch):
        answer = np.zeros((1, 1), np.float32)
        for _ in range(0, int(batch["x"].flat[0]), AT_ONCE):
            if batch.requests[0].cancelled:
                break
            for _ in range(AT_ONCE):
                batch.respond(0, {"y": answer}, final=False)
            self.model.recorder.sent += AT_ONCE
            await batch.room(0)
        batch.finish(0)


def ask(chain, count):
    x = Tensor.of("x", np.full((1, 1), count, np.float32))
    return chain.handler(InferenceRequest("m", {"x": x}))


async def held(reply):
    while not reply.request.paused:
        await asyncio.sleep(0)


async def test_a_million_responses_never_wait_at_once(serve):
    chain = await serve(Counting, decoupled=True)
    read = most_ahead = 0

    async for _ in ask(chain, A_MILLION):
        read += 1
        most_ahead = max(most_ahead, chain.recorder.sent - read)

    assert read == A_MILLION
    assert most_ahead <= MOST_ANSWERS + AT_ONCE
    await chain.close()


async def test_a_model_waits_for_a_client_that_does_not_read(serve):
    chain = await serve(Counting, decoupled=True)
    reply = ask(chain, A_MILLION)
    answers = aiter(reply)

    await anext(answers)
    await held(reply)
    for _ in range(100):
        await asyncio.sleep(0)

    assert chain.recorder.sent <= MOST_ANSWERS + 2 * AT_ONCE
    await answers.aclose()
    await chain.close()


async def test_a_client_that_reads_on_gets_every_answer(serve):
    chain = await serve(Counting, decoupled=True)
    reply = ask(chain, 5000)
    answers = aiter(reply)
    await anext(answers)
    await held(reply)

    assert len([item async for item in answers]) == 4999
    await chain.close()


async def test_a_closed_iterator_frees_the_model(serve):
    chain = await serve(Counting, decoupled=True)
    reply = ask(chain, A_MILLION)
    answers = aiter(reply)
    await anext(answers)
    await held(reply)

    await answers.aclose()

    assert len([item async for item in ask(chain, 20)]) == 20
    await chain.close()


async def test_a_client_that_has_stopped_reading_loses_its_request(serve):
    chain = await serve(Counting, decoupled=True)
    reply = ask(chain, A_MILLION)
    answers = aiter(reply)
    await anext(answers)
    await held(reply)
    before = asyncio.get_running_loop().time()

    others = [item async for item in ask(chain, 20)]  # its turn comes with the end of the first

    assert len(others) == 20
    assert asyncio.get_running_loop().time() - before == pytest.approx(STALLED_S, abs=1)
    (error,) = [item async for item in answers]
    assert isinstance(error, CoreError)
    assert error.kind is Kind.UNAVAILABLE
    assert "the client does not read: 1" in error.message
    await chain.close()


async def test_a_client_that_reads_a_little_keeps_its_request(serve):
    chain = await serve(Counting, decoupled=True)
    reply = ask(chain, 3000)
    answers = aiter(reply)
    found = 0

    for _ in range(10):
        found += isinstance(await anext(answers), core.InferenceResponse)
        await asyncio.sleep(0.9 * STALLED_S)
    found += len([item async for item in answers])

    assert found == 3000
    await chain.close()


async def test_a_drain_waits_for_a_slow_client(serve):
    chain = await serve(Counting, decoupled=True)
    reply = ask(chain, 5000)
    answers = aiter(reply)
    await anext(answers)
    await held(reply)

    draining = asyncio.ensure_future(chain.drain())
    count = len([item async for item in answers])
    await draining

    assert count == 4999
    await chain.close()
