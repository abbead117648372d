"""Loops: consecutive steps that run again and again, in virtual time."""

import numpy as np

from core.request import InferenceRequest, RequestedOutput
from core.tensor import Tensor

from .conftest import X_Z, answer, ask, ensemble, halving


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

    assert await answer(chain, 8, outputs=(RequestedOutput("w"),)) == {"w": [4]}
    assert models.calls("halve") == 1


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
