"""Deadlines of requests: the queue, the execution and the answers end with them; over virtual time."""

import asyncio

import numpy as np
import pytest

import core
from core.errors import CoreError, DeadlineExceeded
from core.request import InferenceRequest
from core.tensor import Tensor
from frontends.shared.deadline import infer_with_deadline

DECOUPLED = {"decoupled": True, "max_batch_size": 0}


class Slow(core.ModelInstance):
    """y = x after 10 ms; of a decoupled model, every 10 ms until the request is cancelled."""

    async def execute(self, batch):
        request = batch.requests[0]
        recorder, loop = self.model.recorder, asyncio.get_running_loop()
        recorder.batches.append(request.id)
        request.on_cancel(lambda: recorder.cancelled.append(loop.time()))
        await asyncio.sleep(0.010)
        if not self.model.config.model_transaction_policy.decoupled:
            return {"y": batch["x"]}
        while not request.cancelled:
            batch.respond(0, {"y": request.inputs["x"].array}, final=False)
            await asyncio.sleep(0.010)
        batch.finish(0)


@pytest.fixture
async def open_slow(serve):
    async def make(config="", **options):
        chain = await serve(Slow, config, **options)
        chain.recorder.cancelled = []
        return chain

    return make


def ask(chain, within_s, id=""):
    loop = asyncio.get_running_loop()
    x = np.zeros((1, 1) if chain.signature.max_batch_size else 1, np.float32)
    request = InferenceRequest("m", {"x": Tensor.of("x", x)}, id=id)
    request.deadline_ns = loop.time_ns() + round(within_s * 1e9)
    return infer_with_deadline(chain.handler, request, loop.time_ns)


def counts(chain):
    """Requests that succeeded, that failed, and of these the cancelled ones."""
    statistics = chain.statistics
    return statistics.success.count, statistics.fail.count, statistics.failures["CANCELED"]


async def test_a_request_in_time_gets_its_answer_and_leaves_no_timer(open_slow):
    chain = await open_slow()

    response = await ask(chain, 0.050)

    assert response.output("y").array.tolist() == [[0]]
    assert all(timer.cancelled() for timer in asyncio.get_running_loop()._scheduled)


async def test_a_timer_that_ends_early_does_not_end_the_request_before_its_deadline(open_slow):
    chain = await open_slow(**DECOUPLED)
    loop = asyncio.get_running_loop()
    start = loop.time_ns()
    request = InferenceRequest("m", {"x": Tensor.of("x", np.zeros(1, np.float32))})
    request.deadline_ns = start + 25_000_000

    def late_clock_ns():  # for this clock, each timer of the loop ends 8 % early
        return start + (loop.time_ns() - start) * 92 // 100

    ends = []
    reply = infer_with_deadline(chain.handler, request, late_clock_ns)
    request.on_cancel(lambda: ends.append(late_clock_ns()))
    items = [item async for item in reply]

    assert isinstance(items[-1], DeadlineExceeded)
    assert [each >= request.deadline_ns for each in ends] == [True]


@pytest.mark.parametrize("config", ["", "dynamic_batching { }"])
async def test_a_request_leaves_the_queue_with_its_deadline(open_slow, config):
    chain = await open_slow(config)
    loop = asyncio.get_running_loop()
    running = ask(chain, 1, id="running")
    await asyncio.sleep(0.001)
    start = loop.time()

    with pytest.raises(DeadlineExceeded, match="Deadline Exceeded"):
        await ask(chain, 0.005, id="late")

    assert loop.time() - start == pytest.approx(0.005, abs=1e-6)
    assert chain.pending == 0
    assert chain.in_flight == 1
    assert chain.statistics.failures["CANCELED"] == 1
    await running
    assert chain.recorder.batches == ["running"]


async def test_the_model_is_notified_at_the_deadline_and_the_client_does_not_wait(open_slow):
    chain = await open_slow()
    loop = asyncio.get_running_loop()
    start = loop.time()

    with pytest.raises(DeadlineExceeded):
        await ask(chain, 0.004)

    assert loop.time() - start == pytest.approx(0.004, abs=1e-6)
    assert chain.recorder.cancelled == [loop.time()]
    await asyncio.sleep(0.020)
    assert chain.in_flight == 0
    assert counts(chain) == (0, 1, 1)


async def test_the_answers_of_a_stream_end_with_the_deadline(open_slow):
    chain = await open_slow(**DECOUPLED)

    items = [item async for item in ask(chain, 0.035)]

    assert [isinstance(item, CoreError) for item in items] == [False, False, False, True]
    assert isinstance(items[-1], DeadlineExceeded)
    await asyncio.sleep(0.020)
    assert chain.in_flight == 0
    assert counts(chain) == (0, 1, 1)


async def test_a_cancelled_stream_has_no_deadline(open_slow):
    chain = await open_slow(**DECOUPLED)

    async for _ in ask(chain, 0.5):
        break
    await asyncio.sleep(0.030)

    assert chain.in_flight == 0
    assert all(timer.cancelled() for timer in asyncio.get_running_loop()._scheduled)


@pytest.mark.parametrize("within_s", [0, -1])
async def test_a_request_after_its_deadline_never_reaches_the_model(open_slow, within_s):
    chain = await open_slow()

    with pytest.raises(DeadlineExceeded):
        ask(chain, within_s)

    assert chain.in_flight == 0
    assert chain.recorder.batches == []
