"""Loops: consecutive steps that run again and again, in virtual time."""

# ruff: noqa: E501 (a searchable text stays on one line)

import asyncio

import numpy as np
import pytest

from core.request import SEQUENCE_START

from .conftest import STEP_S, answer, ask, ensemble, error_of

X_Z = "x FP32[-1] -> z FP32[-1]"
HALVE = "halve x=x -> y=z"


def halving(**more):
    """Halve x until it is at most 1."""
    return ensemble(
        X_Z,
        HALVE,
        **{
            "loop0_steps": "0",
            "loop0_while": "max(z) > 1",
            "loop0_max_turns": "10",
            "loop0_carry": "z -> x",
            **more,
        },
    )


async def test_a_step_repeats_while_its_condition_holds(opened, models):
    chain = await opened(halving())

    assert await answer(chain, 12, 4) == {"z": [0.75, 0.25]}
    assert models.calls("halve") == 4
    assert models.turns == [f"loop[0] turn {number}" for number in (1, 2, 3, 4)]
    assert chain.statistics.success.count == 1 and chain.in_flight == 0


async def test_the_first_turn_always_runs(opened, models):
    chain = await opened(halving())

    assert await answer(chain, 0.5) == {"z": [0.25]}
    assert models.calls("halve") == 1


async def test_without_a_condition_a_loop_runs_all_its_turns(opened, models):
    text = halving().replace("loop[0].while", "other")
    chain = await opened(text)

    assert await answer(chain, 1024) == {"z": [1]}
    assert models.calls("halve") == 10


async def test_too_many_turns_are_an_error_that_names_the_condition(opened, models):
    chain = await opened(halving(loop0_max_turns="3"))

    assert await error_of(ask(chain, 1024)) == (
        "INTERNAL: in ensemble 'e', loop[0]: its condition still holds after 3 turns, the most that "
        "loop[0].max_turns allows: max(z) > 1"
    )
    assert models.calls("halve") == 3
    assert chain.statistics.failures["OTHER"] == 1 and chain.in_flight == 0


async def test_the_last_turn_may_be_the_answer(opened):
    chain = await opened(halving(loop0_max_turns="3", loop0_at_max_turns="last"))

    assert await answer(chain, 1024) == {"z": [128]}


async def test_the_condition_compares_the_new_value_with_the_old_one(opened, models):
    text = halving(loop0_while="max(abs(z - x)) >= 0.5")
    chain = await opened(text)

    assert await answer(chain, 8) == {"z": [0.25]}  # 4, 2, 1, 0.5, 0.25: a change of 0.25
    assert models.calls("halve") == 5


async def test_steps_before_and_after_a_loop_run_once(opened, models):
    text = ensemble(
        X_Z,
        "halve x=x -> y=start",
        "halve x=start -> y=next",
        "halve x=next -> y=z",
        loop0_steps="1",
        loop0_while="max(next) > 1",
        loop0_max_turns="9",
        loop0_carry="next -> start",
    )
    chain = await opened(text)

    assert await answer(chain, 16) == {"z": [0.5]}  # 16 → 8 | 4, 2, 1 | 0.5
    assert models.calls("halve") == 5


async def test_a_tensor_that_is_not_carried_has_the_same_value_in_every_turn(opened, models):
    await models.add(
        "add", "a FP32[-1], b FP32[-1] -> y FP32[-1]", lambda a, b: {"y": a + b}, batch=0
    )
    text = ensemble(
        X_Z,
        "halve x=x -> y=half",
        "add a=x b=half -> y=z",
        loop0_steps="1",
        loop0_max_turns="3",
        loop0_carry="z -> x",
    )
    chain = await opened(text)

    assert await answer(chain, 8) == {"z": [20]}  # 8 + 4 + 4 + 4


async def test_several_steps_and_tensors_make_one_turn(opened, models):
    await models.add(
        "fibonacci",
        "a FP32[-1], b FP32[-1] -> sum FP32[-1], last FP32[-1]",
        lambda a, b: {"sum": a + b, "last": b},
    )
    text = ensemble(
        "x FP32[-1], b FP32[-1] -> z FP32[-1]",
        "fibonacci a=x b=b -> sum=sum last=last",
        "halve x=sum -> y=half",
        "fibonacci a=half b=half -> sum=z last=unused",
        loop0_steps="0-2",
        loop0_while="max(z) < 50",
        loop0_max_turns="20",
        loop0_carry="last -> x, z -> b",
    ).replace("output [", 'output [ { name: "unused" data_type: TYPE_FP32 dims: [ -1 ] },')
    chain = await opened(text)
    from core.request import InferenceRequest
    from core.tensor import Tensor

    one = np.array([1], np.float32)
    request = InferenceRequest("e", {"x": Tensor.of("x", one), "b": Tensor.of("b", one)})
    response = await chain.handler(request)

    assert response.output("z").array.tolist() == [55]


async def test_a_loop_within_a_loop(opened, models):
    await models.add("increment", "x FP32[-1] -> y FP32[-1]", lambda x: {"y": x + 1})
    await models.add("double", "x FP32[-1] -> y FP32[-1]", lambda x: {"y": x * 2})
    text = ensemble(
        X_Z,
        "increment x=x -> y=more",
        "double x=more -> y=z",
        loop0_steps="0-1",
        loop0_while="max(z) < 40",
        loop0_max_turns="10",
        loop0_carry="z -> x",
        loop1_steps="0",
        loop1_max_turns="3",
        loop1_carry="more -> x",
    )
    chain = await opened(text)

    assert await answer(chain, 1) == {"z": [50]}  # (1 + 3) · 2 = 8, (8 + 3) · 2 = 22, (22 + 3) · 2
    assert models.calls("increment") == 9 and models.calls("double") == 3


async def test_a_step_within_a_loop_may_be_skipped_and_its_carried_value_stays(opened, models):
    await models.add("increment", "x FP32[-1] -> y FP32[-1]", lambda x: {"y": x + 1})
    text = ensemble(
        "x FP32[-1] -> z FP32[-1], n FP32[-1]",
        "halve x=x -> y=z",
        "increment x=c -> y=n",
        loop0_steps="0-1",
        loop0_max_turns="4",
        loop0_carry="z -> x, n -> c",
        step1_if="max(z) > 2",
    ).replace("input [", 'input [ { name: "c" data_type: TYPE_FP32 dims: [ -1 ] },')
    chain = await opened(text)
    from core.request import InferenceRequest
    from core.tensor import Tensor

    inputs = {"x": Tensor.of("x", np.array([16], np.float32))}
    inputs["c"] = Tensor.of("c", np.zeros(1, np.float32))
    response = await chain.handler(InferenceRequest("e", inputs))

    # 8, 4: counted; 2, 1: skipped. The last turn has made no n, so the answer has none.
    assert [tensor.name for tensor in response.outputs] == ["z"]
    assert models.calls("increment") == 2
    assert [
        each.inputs["x"].array.tolist() for each in models.asked if each.model_name == "increment"
    ] == [[0], [1]]


async def test_a_turn_may_skip_all_of_its_steps(opened, models):
    text = ensemble(
        X_Z,
        HALVE,
        loop0_steps="0",
        loop0_while="max(x) > 2",
        loop0_max_turns="9",
        loop0_at_max_turns="last",
        loop0_carry="z -> x",
        loop0_else="x -> z",
        step0_if="max(x) > 2",
    )
    chain = await opened(text)

    within = await opened(text.replace("loop[0].else", "step[0].else"))

    assert await answer(chain, 2) == {"z": [2]}
    assert models.calls("halve") == 0
    # The second turn skips the step: after the loop, x has its value from before; within it, that of the turn.
    assert await answer(chain, 3) == {"z": [3]}
    assert await answer(within, 3) == {"z": [1.5]}


async def test_a_loop_may_be_skipped_and_have_a_fallback(opened, models):
    chain = await opened(halving(loop0_if="max(x) > 1", loop0_else="x -> z"))

    assert await answer(chain, 0.5) == {"z": [0.5]}
    assert models.calls("halve") == 0
    assert await answer(chain, 4) == {"z": [1]}


async def test_requests_that_loop_at_the_same_time_share_batches(opened, models):
    wait = "dynamic_batching { max_queue_delay_microseconds: 1000 }"
    await models.add("half", "x FP32[2] -> y FP32[2]", lambda x: {"y": x / 2}, batch=8, config=wait)
    text = ensemble(
        "x FP32[2] -> z FP32[2]",
        "half x=x -> y=z",
        batch=8,
        loop0_steps="0",
        loop0_while="any(z > 1)",
        loop0_max_turns="10",
        loop0_carry="z -> x",
    )
    chain = await opened(text)

    found = await asyncio.gather(*(answer(chain, n, 0, shape=(1, 2)) for n in (2, 4, 8, 16)))

    assert found == [{"z": [1, 0]}] * 4
    assert models.chains["half"].rows == [4, 3, 2, 1]


async def test_the_rows_of_one_request_take_the_same_way(opened, models):
    await models.add("half", "x FP32[1] -> y FP32[1]", lambda x: {"y": x / 2}, batch=8)
    parameters = {
        "loop0_steps": "0",
        "loop0_max_turns": "10",
        "loop0_carry": "z -> x",
    }
    shapes = "x FP32[1] -> z FP32[1]", "half x=x -> y=z"
    whole = await opened(ensemble(*shapes, batch=8, loop0_while="any(z > 1)", **parameters))
    apart = await opened(ensemble(*shapes, batch=8, loop0_while="z > 1", **parameters))

    assert await answer(whole, 2, 8, shape=(2, 1)) == {"z": [0.25, 1]}
    assert await error_of(ask(apart, 2, 8, shape=(2, 1))) == (
        "INVALID: in ensemble 'e', loop[0]: turn 1, the condition for another turn of loop[0]: z > 1: the value "
        "of shape [2, 1] has true and false elements; all rows of a request take the same way: write any(…) or "
        "all(…)"
    )


async def test_an_error_names_turn_step_and_model(opened, models):
    await models.add(
        "fragile",
        "x FP32[-1] -> y FP32[-1]",
        lambda x: ValueError("too small") if x.max() < 3 else {"y": x / 2},
    )
    chain = await opened(halving().replace('"halve"', '"fragile"'))

    text = await error_of(ask(chain, 8))

    assert text.startswith("INTERNAL: in ensemble 'e', loop[0]: turn 3, step 0 (model 'fragile'): ")
    assert "too small" in text
    assert chain.in_flight == 0


async def test_a_cancelled_request_starts_no_further_turn(opened, models):
    chain = await opened(halving(loop0_max_turns="1000"))
    reply = ask(chain, 1e30)
    await asyncio.sleep(2.5 * STEP_S)

    reply.cancel()

    assert await error_of(reply) == (
        "CANCELLED: in ensemble 'e', loop[0]: turn 3, request was cancelled"
    )
    assert models.calls("halve") == 3
    await asyncio.sleep(1)
    assert models.calls("halve") == 3
    assert chain.in_flight == 0 and chain.statistics.failures["CANCELED"] == 1


async def test_a_request_may_be_cancelled_between_turns(opened, models, monkeypatch):
    chain = await opened(halving(loop0_max_turns="1000"))
    loop = asyncio.get_running_loop()
    call_soon = loop.call_soon
    reply = ask(chain, 1e30)

    def cancelled_first(function, *args, **kwargs):
        if getattr(function, "__name__", "") == "_turn" and len(models.turns) == 2:
            call_soon(reply.cancel)
        return call_soon(function, *args, **kwargs)

    monkeypatch.setattr(loop, "call_soon", cancelled_first)

    assert await error_of(reply) == "CANCELLED: in ensemble 'e', loop[0]: request was cancelled"
    assert models.calls("halve") == 2
    assert chain.in_flight == 0


async def test_a_deadline_ends_a_loop_between_turns(opened, models):
    chain = await opened(halving(loop0_max_turns="1000"))
    text = await error_of(ask(chain, 1e30, deadline_ns=1))

    assert text.startswith(
        "DEADLINE_EXCEEDED: in ensemble 'e', loop[0]: Deadline Exceeded after 0 turns"
    )
    assert models.calls("halve") == 0
    assert chain.statistics.failures["DEADLINE"] == 1


async def test_turns_that_are_answered_at_once_neither_recurse_nor_occupy_the_event_loop(
    opened, models
):
    """A loop without a step that waits: its only step is always skipped."""
    text = ensemble(
        X_Z,
        HALVE,
        loop0_steps="0",
        loop0_max_turns="5000",
        loop0_carry="z -> x",
        loop0_else="x -> z",
        step0_if="max(x) > 100",
    )
    chain = await opened(text)
    others = 0

    async def beside():
        nonlocal others
        while True:
            others += 1
            await asyncio.sleep(0)

    task = asyncio.ensure_future(beside())
    assert await answer(chain, 1) == {"z": [1]}
    task.cancel()
    assert others > 1000


async def test_a_decoupled_step_before_a_loop_starts_a_loop_for_each_of_its_answers(opened, models):
    text = ensemble(
        X_Z,
        "each x=x -> y=one",
        "halve x=one -> y=z",
        loop0_steps="1",
        loop0_while="max(z) > 1",
        loop0_max_turns="10",
        loop0_carry="z -> one",
        most=2,
    )
    chain = await opened(text)

    found = [item.output("z").array.tolist() async for item in ask(chain, 2, 8, 64)]

    assert sorted(found) == [[1], [1], [1]]
    assert models.calls("halve") == 1 + 3 + 6


async def test_parameters_and_priority_of_the_request_go_to_each_turn(opened, models):
    chain = await opened(halving())

    await ask(chain, 8, id="r", priority=0, parameters={"seed": 7})

    assert [(each.id, each.parameters) for each in models.asked] == [("r", {"seed": 7})] * 3


async def test_only_the_wanted_outputs_are_made(opened, models):
    text = ensemble(
        "x FP32[-1] -> z FP32[-1], w FP32[-1]",
        "halve x=x -> y=z",
        "halve x=x -> y=w",
        loop0_steps="0",
        loop0_while="max(z) > 1",
        loop0_max_turns="10",
        loop0_carry="z -> x",
    )
    chain = await opened(text)
    from core.request import RequestedOutput

    assert await answer(chain, 8, outputs=(RequestedOutput("w"),)) == {"w": [4]}
    assert models.calls("halve") == 1


@pytest.mark.parametrize(
    "text, message",
    [
        (halving(loop0_max_turns=""), "parameter 'loop[0].max_turns': string_value is empty"),
        (halving(loop0_max_turns="0"), "'loop[0].max_turns': it is '0'; it must be a number from 1 to 1,000,000"),
        (halving(loop0_max_turns="many"), "it is 'many'; it must be a number from 1 to 1,000,000"),
        (halving().replace("loop[0].max_turns", "loop0"), "loop[0] needs loop[0].max_turns: the most turns"),
        (halving().replace("loop[0].steps", "loop0"), "loop[0] needs loop[0].steps: the first and the last step, such as 1-2"),
        (halving(loop0_steps="0-1"), "parameter 'loop[0].steps': 0-1 are no steps of the ensemble, which has 1; the first is 0"),
        (halving(loop0_steps="all"), "it is 'all'; it must be one step or two, such as 1 or 1-2"),
        (halving(loop0_until="z > 1"), "parameter 'loop[0].until': there is no such parameter; there are loop[<index>].steps"),
        (halving(loop0_whyle="z > 1"), "there is no such parameter; did you mean 'while'?"),
        (halving(loop0_at_max_turns="stop"), "it is 'stop'; it can be error (the default) or last"),
        (halving(loop0_carry="z = x"), "parameter 'loop[0].carry': 'z = x' is not of the form <new> -> <old>"),
        (halving(loop0_carry="y -> x"), "parameter 'loop[0].carry': no input and no step makes 'y'; there are x, z"),
        (halving(loop0_carry="x -> z"), "no step of loop[0] makes 'x'; they make z"),
        (halving(loop0_carry="z -> z"), "a step of loop[0] makes 'z' anew in each turn, so it cannot get the value of 'z'"),
        (halving(loop0_while="max(w) > 1"), "parameter 'loop[0].while': no input and no step makes 'w'; there are x, z, at character 5 of: max(w) > 1"),
        (halving(loop0_while="max(z)"), "a condition is true or false; these are numbers, at character 1 of: max(z)"),
        (halving(loop0_if="max(z) > 1"), "is not written"),
        (
            ensemble(X_Z, "halve x=x -> y=a", "halve x=a -> y=b", "halve x=b -> y=z",
                     loop0_steps="0-1", loop0_max_turns="2", loop0_carry="b -> x",
                     loop1_steps="1-2", loop1_max_turns="2", loop1_carry="z -> a"),
            "parameter 'loop[1].steps': steps 1 to 2 overlap those of loop[0], 0 to 1",
        ),
        (
            ensemble(X_Z, "halve x=x -> y=a", "halve x=b -> y=z", "halve x=a -> y=b",
                     loop0_steps="0-1", loop0_max_turns="2", loop0_carry="z -> x"),
            "loop[0] reads 'b', which step 2 (model 'halve') makes from 'a' of the loop: let the loop contain this step",
        ),
        (
            ensemble(X_Z, "each x=x -> y=z", loop0_steps="0", loop0_max_turns="2", loop0_carry="z -> x"),
            "in ensemble 'e', step 0 (model 'each') of loop[0]: the model is decoupled",
        ),
        (
            ensemble("x FP32[-1] -> z FP32[1]", "judge x=x -> score=z label=l flag=f",
                     loop0_steps="0", loop0_max_turns="2", loop0_carry="l -> x"),
            "parameter 'loop[0].carry': 'l' is BYTES, 'x' is FP32; they must be equal",
        ),
    ],
)  # fmt: skip
async def test_a_loop_that_cannot_be_is_refused_at_the_load(refusal, text, message):
    assert message in await refusal(text)


async def test_a_model_with_sequences_is_refused_within_a_loop(refusal, models):
    await models.add(
        "memory",
        "x FP32[1] -> y FP32[1]",
        lambda x: {"y": x},
        batch=1,
        config="sequence_batching { direct {} }",
    )
    text = ensemble(
        "x FP32[1] -> z FP32[1]",
        "memory x=x -> y=z",
        batch=1,
        loop0_steps="0",
        loop0_max_turns="2",
        loop0_carry="z -> x",
    )

    assert "step 0 (model 'memory') of loop[0]: the model has sequence_batching" in await refusal(
        text
    )


async def test_a_carried_tensor_has_the_shape_of_the_old_one(refusal, models):
    await models.add("pair", "x FP32[2] -> y FP32[3]", lambda x: {"y": x})
    text = ensemble(
        "x FP32[2] -> z FP32[3]",
        "pair x=x -> y=z",
        loop0_steps="0",
        loop0_max_turns="2",
        loop0_carry="z -> x",
    )

    assert "'z' has shape [3], 'x' has [2]; they must be equal" in await refusal(text)


async def test_a_row_gains_or_loses_its_batch_dimension_where_it_is_carried(opened, models):
    await models.add("half", "x FP32[1] -> y FP32[1]", lambda x: {"y": x / 2}, batch=4)
    text = ensemble(
        "x FP32[-1] -> z FP32[1]",
        "half x=x -> y=z",
        loop0_steps="0",
        loop0_while="max(z) > 1",
        loop0_max_turns="9",
        loop0_carry="z -> x",
    ).replace("dims: [ -1 ]", "dims: [ 1 ]")
    chain = await opened(text)

    response = await ask(chain, 8)

    assert response.output("z").array.tolist() == [1]


async def test_the_steps_of_a_loop_are_no_requests_of_the_sequence(opened, models):
    chain = await opened(halving())

    assert await answer(chain, 4, correlation_id=7, flags=SEQUENCE_START) == {"z": [1]}
    assert [(each.correlation_id, each.flags) for each in models.asked] == [(0, 0)] * 2


async def test_a_loop_may_read_what_a_skipped_step_has_not_made(opened):
    text = ensemble(
        "x FP32[-1] -> y FP32[-1], z FP32[-1]",
        "halve x=x -> y=y",
        "halve x=x -> y=z",
        step0_if="max(x) > 100",
        loop0_steps="1",
        loop0_while="not any(y > 0)",
        loop0_max_turns="3",
        loop0_at_max_turns="last",
        loop0_carry="z -> x",
    )
    chain = await opened(text)

    assert await answer(chain, 8) == {"z": [1]}
    assert await answer(chain, 200) == {"y": [100], "z": [100]}


async def test_a_step_of_a_loop_is_skipped_if_none_of_its_inputs_was_made_outside(opened, models):
    text = ensemble(
        "x FP32[-1] -> z FP32[-1], v FP32[-1]",
        "halve x=x -> y=a",
        "either a=a, b=a -> y=z",
        "halve x=x -> y=v",
        step0_if="max(x) > 100",
        loop0_steps="1-2",
        loop0_max_turns="2",
    )
    chain = await opened(text)

    assert await answer(chain, 8) == {"v": [4]}
    assert models.calls("either") == 0


async def test_a_loop_may_read_an_input_that_the_client_omits(opened):
    text = ensemble(
        "x FP32[-1], w FP32[-1]? -> z FP32[-1], v FP32[-1]",
        "halve x=x -> y=z",
        "either a=z, b=w -> y=v",
        loop0_steps="0-1",
        loop0_while="not any(w > 0) and max(z) > 1",
        loop0_max_turns="9",
        loop0_carry="z -> x",
    )
    chain = await opened(text)

    assert await answer(chain, 8) == {"z": [1], "v": [1]}
