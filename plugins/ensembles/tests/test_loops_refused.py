"""Loops that cannot run: the text with which a load refuses them."""

# ruff: noqa: E501 (a searchable text stays on one line)

import pytest

from .conftest import X_Z, ensemble, halving


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
