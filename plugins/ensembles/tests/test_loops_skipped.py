"""Loops with conditions: loops and steps that are skipped, and what reads their tensors, in virtual time."""

import numpy as np

from core.request import InferenceRequest
from core.tensor import Tensor

from .conftest import HALVE, X_Z, answer, ensemble, halving


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
    # The second turn skips the step: after the loop, x has its value from before; within it, that
    # of the turn.
    assert await answer(chain, 3) == {"z": [3]}
    assert await answer(within, 3) == {"z": [1.5]}


async def test_a_loop_may_be_skipped_and_have_a_fallback(opened, models):
    chain = await opened(halving(loop0_if="max(x) > 1", loop0_else="x -> z"))

    assert await answer(chain, 0.5) == {"z": [0.5]}
    assert models.calls("halve") == 0
    assert await answer(chain, 4) == {"z": [1]}


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
