"""Ensembles: requests that walk through other models, in virtual time."""

import asyncio
import weakref
from pathlib import Path

import numpy as np
import pytest

import core
from core import config as configuration
from core.errors import CoreError, Kind, not_found
from core.pipeline import ChainServices
from core.pipeline.ensemble import EnsembleChain, StepModels, needed_steps, steps_of
from core.request import InferenceRequest, RequestedOutput
from core.response import Reply
from core.tensor import Tensor

IO = """
input [ { name: "x" data_type: TYPE_FP32 dims: [ -1 ] } ]
output [ { name: "z" data_type: TYPE_FP32 dims: [ -1 ] } ]
"""


def step(model, takes, gives):
    return (
        f'step {{ model_name: "{model}" input_map {{ key: "x" value: "{takes}" }} '
        f'output_map {{ key: "y" value: "{gives}" }} }}'
    )


class Add(core.ModelInstance):
    """y = x + 1, after 10 ms."""

    async def execute(self, batch):
        await asyncio.sleep(0.010)
        return {"y": batch["x"] + 1}


class Fail(core.ModelInstance):
    async def execute(self, batch):
        raise ValueError("out of order")


class Each(core.ModelInstance):
    """One answer for each value of x."""

    async def execute(self, batch):
        for value in batch.requests[0].inputs["x"].array:
            await asyncio.sleep(0.001)
            batch.respond(0, {"y": np.array([value], np.float32)}, final=False)
        batch.finish(0)


@pytest.fixture
def ensemble(serve):
    async def make(steps, io=IO, decoupled=False, max_batch_size=0, most=0):
        models = {
            "add": await serve(Add, max_batch_size=max_batch_size),
            "fail": await serve(Fail, max_batch_size=max_batch_size),
            "each": await serve(Each, max_batch_size=0, decoupled=True),
        }
        text = f'name: "e" platform: "ensemble" max_batch_size: {max_batch_size} {io}'
        if decoupled:
            text += " model_transaction_policy { decoupled: true }"
        text += " ensemble_scheduling { " + " ".join(steps)
        text += f" max_inflight_requests: {most} }}"
        config = configuration.parse_text(text, "test")
        configuration.normalise(config, {}, [])

        asked = []

        def infer(request):
            asked.append(request)
            if request.model_name not in models:
                raise not_found(f"Request for unknown model: '{request.model_name}' is not found")
            return models[request.model_name].handler(request)

        async def check():
            return all([await model.check() for model in models.values()])

        loop = asyncio.get_running_loop()
        chain = EnsembleChain(
            config,
            configuration.signature_of(config, Path(), 1),
            steps_of(config),
            StepModels(infer, lambda: all(model.ready for model in models.values()), check),
            ChainServices(loop, loop.time_ns),
        )
        chain.models, chain.asked = models, asked
        return chain

    return make


def ask(chain, *values, **kwargs):
    array = np.array(values, np.float32)
    if chain.signature.max_batch_size:
        array = array.reshape(1, -1)
    return chain.handler(InferenceRequest("e", {"x": Tensor.of("x", array)}, **kwargs))


def z(response, name="z"):
    return response.output(name).array.ravel().tolist()


async def test_tensors_go_from_step_to_step(ensemble):
    chain = await ensemble([step("add", "x", "a"), step("add", "a", "b"), step("add", "b", "z")])

    response = await ask(chain, 1, id="r")

    assert z(response) == [4]
    assert (response.model_name, response.id) == ("e", "r")
    assert chain.statistics.success.count == chain.statistics.inference_count == 1
    assert chain.models["add"].statistics.inference_count == 3


async def test_each_step_uses_shared_memory_and_the_last_output_goes_there(ensemble):
    chain = await ensemble([step("add", "x", "a"), step("add", "a", "z")])
    memory = bytearray(4)

    await ask(chain, 1, outputs=(RequestedOutput("z", memory=memoryview(memory)),), shared=True)

    assert np.frombuffer(memory, np.float32).tolist() == [3]
    assert [request.shared for request in chain.asked] == [True, True]
    assert all(output.memory is None for each in chain.asked for output in each.outputs)


async def test_the_order_of_the_steps_in_the_configuration_does_not_matter(ensemble):
    chain = await ensemble([step("add", "a", "z"), step("add", "x", "a")])

    assert z(await ask(chain, 1)) == [3]


async def test_steps_that_do_not_depend_on_each_other_run_at_the_same_time(ensemble, serve):
    io = IO.replace("output [", 'output [ { name: "w" data_type: TYPE_FP32 dims: [ -1 ] },')
    chain = await ensemble([step("add", "x", "w"), step("each_alone", "x", "z")], io)
    other = await serve(Add, max_batch_size=0)
    chain.models["each_alone"] = other
    loop = asyncio.get_running_loop()
    start = loop.time()

    response = await ask(chain, 1)

    assert (z(response), z(response, "w")) == ([2], [2])
    assert loop.time() - start == pytest.approx(0.010, abs=0.001)


async def test_steps_that_no_output_needs_do_not_run(ensemble):
    io = IO.replace("output [", 'output [ { name: "w" data_type: TYPE_FP32 dims: [ -1 ] },')
    chain = await ensemble([step("add", "x", "w"), step("fail", "w", "z")], io)

    response = await ask(chain, 1, outputs=(RequestedOutput("w"),))

    assert [tensor.name for tensor in response.outputs] == ["w"]


async def test_a_failing_step_is_named_with_its_model(ensemble):
    chain = await ensemble([step("add", "x", "a"), step("fail", "a", "z")])

    with pytest.raises(CoreError, match=r"in ensemble 'e', step 1 .model 'fail'.: .*out of order"):
        await ask(chain, 1)
    assert chain.statistics.failures["OTHER"] == 1
    assert chain.in_flight == 0


async def test_a_step_whose_model_is_unloaded_fails_the_request(ensemble):
    chain = await ensemble([step("gone", "x", "z")])

    with pytest.raises(
        CoreError, match=r"step 0 .model 'gone'.: Request for unknown model"
    ) as error:
        await ask(chain, 1)
    assert error.value.kind is Kind.NOT_FOUND


async def test_a_wrong_input_is_refused_before_the_first_step(ensemble):
    chain = await ensemble([step("add", "x", "z")])

    with pytest.raises(CoreError, match="unexpected inference input 'v' for model 'e'"):
        chain.handler(InferenceRequest("e", {"v": Tensor.of("v", np.zeros(1, np.float32))}))
    assert chain.models["add"].statistics.execution_count == 0


async def test_cancelling_an_ensemble_cancels_its_running_step(ensemble):
    chain = await ensemble([step("add", "x", "a"), step("add", "a", "z")])
    busy = chain.models["add"].handler(
        InferenceRequest("add", {"x": Tensor.of("x", np.zeros(1, np.float32))})
    )

    reply = ask(chain, 1)
    reply.cancel()

    with pytest.raises(CoreError, match="cancelled"):
        await reply
    await busy
    assert chain.models["add"].statistics.failures["CANCELED"] == 1
    assert chain.statistics.failures["CANCELED"] == 1


async def test_a_last_step_that_answers_after_a_cancellation_is_no_success(ensemble):
    chain = await ensemble([step("add", "x", "z")])
    reply = ask(chain, 1)
    await asyncio.sleep(0)
    assert chain.models["add"].pending == 0

    reply.cancel()
    await asyncio.gather(_outcome(reply))

    for statistics in (chain.statistics, chain.models["add"].statistics):
        assert statistics.success.count == 0
        assert statistics.failures["CANCELED"] == statistics.fail.count == 1
        assert statistics.inference_count == 0


async def _outcome(reply):
    try:
        return await reply
    except CoreError as error:
        return error


async def test_after_a_cancellation_no_other_step_begins(ensemble):
    chain = await ensemble([step("add", "x", "a"), step("add", "a", "z")])
    reply = ask(chain, 1)
    await asyncio.sleep(0.005)

    reply.cancel()

    with pytest.raises(CoreError, match="cancelled"):
        await reply
    assert len(chain.asked) == 1


async def test_a_missing_optional_input_is_missing_in_the_step(ensemble):
    io = IO.replace(
        "input [", 'input [ { name: "more" data_type: TYPE_FP32 dims: [ -1 ] optional: true },'
    )
    both = (
        'step { model_name: "add" input_map { key: "x" value: "x" } '
        'input_map { key: "more" value: "more" } output_map { key: "y" value: "z" } }'
    )
    chain = await ensemble([both], io)

    assert z(await ask(chain, 1)) == [2]


async def test_each_response_of_a_decoupled_step_runs_the_next_steps(ensemble):
    chain = await ensemble(
        [step("each", "x", "a"), step("add", "a", "b"), step("add", "b", "z")], decoupled=True
    )

    answers = [z(response) async for response in ask(chain, 1, 5, 9)]

    assert sorted(answers) == [[3], [7], [11]]
    assert chain.statistics.success.count == 1
    assert chain.in_flight == 0


async def test_a_decoupled_step_without_responses_ends_the_request(ensemble):
    chain = await ensemble([step("each", "x", "a"), step("add", "a", "z")], decoupled=True)

    assert [response async for response in ask(chain)] == []


async def test_an_answer_of_a_decoupled_step_meets_tensors_that_come_later(ensemble):
    """w comes after 10 ms, the answers of `each` after 1 ms and 2 ms."""
    io = IO.replace("output [", 'output [ { name: "w" data_type: TYPE_FP32 dims: [ -1 ] },')
    chain = await ensemble([step("add", "x", "w"), step("each", "x", "z")], io, decoupled=True)

    answers = [(z(r), z(r, "w")) async for r in ask(chain, 1, 5)]

    assert sorted(answers) == [([1], [2, 6]), ([5], [2, 6])]


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


async def drained(reply):
    return [z(response) async for response in reply]


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


async def test_batched_requests_of_an_ensemble_keep_their_rows(ensemble):
    chain = await ensemble([step("add", "x", "a"), step("add", "a", "z")], max_batch_size=8)

    replies = [ask(chain, number) for number in range(5)]

    assert [z(await reply) for reply in replies] == [[number + 2] for number in range(5)]


def test_needed_steps_are_those_on_the_way_to_the_wanted_tensors():
    config = configuration.parse_text(
        "ensemble_scheduling { "
        + step("m", "x", "a")
        + step("m", "a", "b")
        + step("m", "a", "c")
        + step("m", "c", "d")
        + " }",
        "test",
    )

    assert [s.index for s in needed_steps(steps_of(config), ["b"])] == [0, 1]
    assert [s.index for s in needed_steps(steps_of(config), ["d"])] == [0, 2, 3]


async def test_tensors_of_a_streamed_response_are_freed_with_it(ensemble, serve):
    """A stream of thousands of responses must not hold all their tensors until its end."""
    chain = await ensemble([step("each", "x", "a"), step("add", "a", "z")], decoupled=True)
    made, alive = [], []

    class Watched(core.ModelInstance):
        async def execute(self, batch):
            for value in batch.requests[0].inputs["x"].array:
                await asyncio.sleep(0.015)  # slower than `add`
                y = np.array([value], np.float32)
                made.append(weakref.ref(y))
                batch.respond(0, {"y": y}, final=False)
                del y
                chain.asked.clear()
                alive.append(sum(each() is not None for each in made))
            batch.finish(0)

    chain.models["each"] = await serve(Watched, max_batch_size=0, decoupled=True)
    answers = 0
    async for _ in ask(chain, *range(200)):
        answers += 1

    assert answers == 200
    assert max(alive) < 5
