"""Ensembles: requests that walk through other models, in virtual time."""

import asyncio

import numpy as np
import pytest
from flow.ensembles import IO, Add, ask, step, z

from core import config as configuration
from core.errors import CoreError, Kind
from core.pipeline.ensemble import needed_steps, steps_of
from core.request import InferenceRequest, RequestedOutput
from core.tensor import Tensor


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
