"""max_inflight_requests: how many responses of a step are under way in an ensemble, in virtual time."""

import asyncio

import numpy as np
import pytest
from flow.ensembles import ask, drained, step, z

import core
from core.errors import Kind
from core.response import Reply


class Gauge:
    """Number of running requests of one model, and its maximum."""

    def __init__(self, chain, model):
        self.now = self.most = 0
        endpoint = chain.models[model].handler
        chain.models[model].handler = self._around(endpoint)

    def _around(self, endpoint):
        def ask(request):
            self.now += 1
            self.most = max(self.most, self.now)
            outer, inner = Reply(request), endpoint(request)

            def arrived(item, final):
                self.now -= final
                outer.send(item, final)

            inner.listen(arrived)
            return outer

        return ask


@pytest.mark.parametrize("most,found", [(0, 6), (1, 1), (2, 2)])
async def test_a_step_runs_as_often_at_a_time_as_the_ensemble_allows(ensemble, most, found):
    chain = await ensemble(
        [step("each", "x", "a"), step("add", "a", "z")], decoupled=True, most=most
    )
    gauge = Gauge(chain, "add")

    answers = [z(response) async for response in ask(chain, 1, 2, 3, 4, 5, 6)]

    assert answers == [[2], [3], [4], [5], [6], [7]]
    assert (gauge.most, gauge.now) == (found, 0)
    assert chain.in_flight == 0


async def test_the_inflight_limit_applies_to_each_request(ensemble):
    chain = await ensemble([step("each", "x", "a"), step("add", "a", "z")], decoupled=True, most=1)
    gauge = Gauge(chain, "add")

    await asyncio.gather(*(drained(ask(chain, 1, 2)) for _ in range(3)))

    assert gauge.most > 1


async def test_a_waiting_step_does_not_start_after_a_cancellation(ensemble):
    chain = await ensemble([step("each", "x", "a"), step("add", "a", "z")], decoupled=True, most=1)
    reply = ask(chain, 1, 2, 3)
    await asyncio.sleep(0.005)

    reply.cancel()
    answers = [each async for each in reply]

    assert answers[-1].kind is Kind.CANCELLED
    assert sum(request.model_name == "add" for request in chain.asked) == 1
    assert chain.in_flight == 0


async def test_thousands_of_waiting_steps_start_without_recursion(ensemble, serve):
    class AtOnce(core.ModelInstance):
        placement = "inline"

        def execute(self, batch):
            return {"y": batch["x"]}

    chain = await ensemble([step("each", "x", "a"), step("add", "a", "z")], decoupled=True, most=1)
    slow, quick = chain.models["add"], await serve(AtOnce, max_batch_size=0)
    first = [slow.handler]
    quick.handler, at_once = lambda r: (first.pop() if first else at_once)(r), quick.handler
    chain.models["add"] = quick
    chain.models["each"] = await serve(Burst, max_batch_size=0, decoupled=True)

    answers = [z(response) async for response in ask(chain, *range(3000))]

    assert len(answers) == 3000


class Burst(core.ModelInstance):
    """One answer for each value of x, all at once."""

    async def execute(self, batch):
        for value in batch.requests[0].inputs["x"].array:
            batch.respond(0, {"y": np.array([value], np.float32)}, final=False)
        batch.finish(0)


class Patient(core.ModelInstance):
    """Sends a response for each value of x, when the client is ready for it; counts them."""

    async def execute(self, batch):
        for value in batch.requests[0].inputs["x"].array:
            self.model.recorder.given += 1
            batch.respond(0, {"y": np.array([value], np.float32)}, final=False)
            await batch.room(0)
        batch.finish(0)


@pytest.fixture
def patient(serve):
    async def make():
        chain = await serve(Patient, max_batch_size=0, decoupled=True)
        chain.recorder.given = 0
        return chain

    return make


async def test_a_model_with_many_waiting_responses_is_paused(ensemble, patient):
    chain = await ensemble([step("each", "x", "a"), step("add", "a", "z")], decoupled=True, most=3)
    chain.models["each"] = made = await patient()
    reply = ask(chain, *range(50))

    given = []
    while not reply.finished:
        await asyncio.sleep(0.010)
        given.append(made.recorder.given)

    # Three have a slot and one waits; the next step takes one after another.
    assert given[:3] == [4, 5, 6], given
    assert given[-1] == 50
    assert [z(response) async for response in reply] == [[x + 1] for x in range(50)]


async def test_without_a_limit_the_model_is_not_paused(ensemble, patient):
    chain = await ensemble([step("each", "x", "a"), step("add", "a", "z")], decoupled=True)
    chain.models["each"] = made = await patient()
    reply = ask(chain, *range(50))

    await asyncio.sleep(0.005)

    assert made.recorder.given == 50
    assert len(await drained(reply)) == 50


async def test_a_model_of_two_steps_never_waits_for_itself(ensemble, patient):
    steps = [step("each", "x", "a"), step("each", "a", "z")]
    chain = await ensemble(steps, decoupled=True, most=1)
    chain.models["each"] = await patient()

    assert await asyncio.wait_for(drained(ask(chain, 1, 2, 3)), 60) == [[1], [2], [3]]


async def test_a_waiting_model_continues_when_the_request_is_cancelled(ensemble, patient):
    chain = await ensemble([step("each", "x", "a"), step("add", "a", "z")], decoupled=True, most=1)
    chain.models["each"] = made = await patient()
    reply = ask(chain, *range(50))
    await asyncio.sleep(0.005)
    assert made.recorder.given < 50

    reply.cancel()

    await asyncio.sleep(1)
    assert made.in_flight == 0 and chain.in_flight == 0
