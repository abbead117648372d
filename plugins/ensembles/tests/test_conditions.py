"""Conditions of steps and fallbacks for what they leave out, in virtual time."""

# ruff: noqa: E501 (a searchable text stays on one line)

import asyncio

import numpy as np
import pytest
from core_ensembles import conditions

from .conftest import answer, ask, ensemble, error_of

JUDGE = "judge x=x -> score=score label=label flag=flag"
BOTH = "x FP32[-1] -> score FP32[1], z FP32[-1]"
TAKEN = {"z": [1.0], "score": [2.0]}


def judged(**parameters):
    """A cheap model judges x; an expensive one halves it, on a condition."""
    text = ensemble(BOTH, JUDGE, "halve x=x -> y=z", **parameters)
    return text.replace("output [", (
        'output [ { name: "label" data_type: TYPE_STRING dims: [ 1 ] },'
        '{ name: "flag" data_type: TYPE_BOOL dims: [ 1 ] },'
    ))  # fmt: skip


@pytest.mark.parametrize(
    "condition, value, runs",
    [
        ("score > 0.5", 2, True),
        ("score > 0.5", 0.5, False),
        ("score >= 0.5 and flag", 0.5, True),
        ('label == "cat"', 2, True),
        ('label == "cat"', -2, False),
        ('label != "cat" or score > 100', 2, False),
        ("not flag", -1, True),
        ("any(x > 3)", 2, False),
        ("rows(x) > 0 and size(x) == 1", 2, True),
        ("flag == true", 2, True),
    ],
)
async def test_a_step_runs_only_if_its_condition_holds(opened, models, condition, value, runs):
    chain = await opened(judged(step1_if=condition))

    found = await answer(chain, value)

    assert ("z" in found, models.calls("halve")) == (runs, int(runs))
    assert found["score"] == [value]


async def test_unless_is_the_opposite(opened, models):
    chain = await opened(judged(step1_unless="score > 0.5"))

    assert "z" not in await answer(chain, 2)
    assert "z" in await answer(chain, -2)


async def test_a_fallback_stands_for_an_output_of_a_skipped_step(opened, models):
    chain = await opened(judged(step1_if="score > 0.5", step1_else="x -> z"))

    assert (await answer(chain, 2))["z"] == [1]
    assert (await answer(chain, -2))["z"] == [-2]


async def test_steps_after_a_fallback_get_it(opened, models):
    text = ensemble(
        "x FP32[-1] -> z FP32[-1]",
        "halve x=x -> y=a",
        "halve x=a -> y=z",
        step0_if="max(x) > 10",
        step0_else="x -> a",
    )
    chain = await opened(text)

    assert await answer(chain, 12) == {"z": [3]}
    assert await answer(chain, 8) == {"z": [4]}


async def test_a_step_that_lacks_an_input_is_skipped_too_and_has_a_fallback(opened, models):
    text = ensemble(
        "x FP32[-1] -> z FP32[-1]",
        "halve x=x -> y=a",
        "halve x=a -> y=z",
        step0_if="max(x) > 10",
        step1_else="x -> z",
    )
    chain = await opened(text)

    assert await answer(chain, 8) == {"z": [8]}
    assert models.calls("halve") == 0


async def test_two_steps_of_which_one_runs_meet_in_one_output(opened, models):
    await models.add("negate", "x FP32[-1] -> y FP32[-1]", lambda x: {"y": -x})
    text = ensemble(
        "x FP32[-1] -> z FP32[-1]",
        "halve x=x -> y=z",
        "negate x=x -> y=other",
        step0_if="max(x) > 10",
        step0_else="other -> z",
        step1_unless="max(x) > 10",
    )
    chain = await opened(text)

    assert await answer(chain, 12) == {"z": [6]}
    assert await answer(chain, 8) == {"z": [-8]}
    assert (models.calls("halve"), models.calls("negate")) == (1, 1)


async def test_an_answer_without_any_output_is_an_error(opened):
    chain = await opened(
        ensemble("x FP32[-1] -> z FP32[-1]", "halve x=x -> y=z", step0_if="max(x) > 10")
    )

    text = await error_of(ask(chain, 8))

    assert text.startswith("INVALID: in ensemble 'e', no output was made of those wanted (z)")
    assert "step 0 (model 'halve')" in text


@pytest.mark.parametrize(
    "condition, runs",
    [
        ("max(a) > 1", False),
        ("not max(a) > 1", True),
        ("not present(a)", True),
        ("present(a)", False),
        ("max(a) > 1 or max(x) > 1", True),
        ("max(a) != 1", False),
        ("all(a > 1)", False),
        ("-max(a) < 9", False),
        ("size(a) == 0", False),
    ],
)
async def test_a_comparison_with_what_a_skipped_step_has_not_made_is_false(
    opened, models, condition, runs
):
    text = ensemble(
        "x FP32[-1] -> a FP32[-1], z FP32[-1], w FP32[-1]",
        "halve x=x -> y=a",
        "halve x=x -> y=z",
        "halve x=x -> y=w",
        step0_if="max(x) > 100",
        step1_if=condition,
    )
    chain = await opened(text)

    assert ("z" in await answer(chain, 8)) is runs


@pytest.mark.parametrize("condition, runs", [("present(o)", False), ("not present(o)", True)])
async def test_an_optional_input_that_the_client_omits_does_not_exist(
    opened, models, condition, runs
):
    text = ensemble(
        "x FP32[-1], o FP32[-1]? -> z FP32[-1], w FP32[-1]",
        "halve x=x -> y=z",
        "either a=x b=o -> y=w",
        step0_if=condition,
    )
    chain = await opened(text)

    assert ("z" in await answer(chain, 8)) is runs


async def test_elements_that_differ_are_an_error_that_says_what_to_write(opened):
    chain = await opened(judged(step1_if="x > 1"))

    assert await error_of(ask(chain, 0, 2)) == (
        "INVALID: in ensemble 'e', the condition of step 1 (model 'halve'): x > 1: the value of shape [2] has true "
        "and false elements; all rows of a request take the same way: write any(…) or all(…)"
    )


async def test_shapes_that_do_not_fit_are_an_error_of_the_request(opened):
    text = ensemble(
        "x FP32[-1] -> a FP32[-1], z FP32[-1]",
        "either a=x b=x -> y=a",
        "halve x=x -> y=z",
        step1_if="any(a > x)",
    )
    chain = await opened(text)

    text = await error_of(ask(chain, 0, 2))

    assert text.startswith(
        "INVALID: in ensemble 'e', the condition of step 1 (model 'halve'): any(a > x): "
    )
    assert "the shapes [4] and [2] do not fit each other" in text


async def test_answers_of_a_decoupled_step_are_filtered_one_by_one(opened, models):
    text = ensemble(
        "x FP32[-1] -> z FP32[-1]",
        "each x=x -> y=one",
        "halve x=one -> y=z",
        step1_if="max(one) > 3",
        step1_else="one -> z",
    )
    chain = await opened(text)

    found = [item.output("z").array.tolist() async for item in ask(chain, 2, 4, 6)]

    assert sorted(found) == [[2], [2], [3]]
    assert models.calls("halve") == 2


async def test_a_large_tensor_is_looked_at_on_a_thread(opened, models, monkeypatch):
    chain = await opened(judged(step1_if="max(x) > 0.5"))
    threads = []
    loop = asyncio.get_running_loop()
    executor = loop.run_in_executor

    def seen(pool, function, *args):
        threads.append(function)
        return executor(pool, function, *args)

    monkeypatch.setattr(loop, "run_in_executor", seen)
    large = np.zeros(conditions.LARGE, np.float32)

    large[-1] = 1
    assert len((await answer(chain, *large))["z"]) == conditions.LARGE
    assert len(threads) == 1
    await answer(chain, 1)
    assert len(threads) == 1


@pytest.mark.parametrize(
    "parameters, message",
    [
        ({"step1_if": "score > "}, "parameter 'step[1].if': expected a tensor, a value or '(', found the end, at character 8 of: score >"),
        ({"step1_if": "scor > 1"}, "parameter 'step[1].if': no input and no step makes 'scor'; did you mean 'score'?, at character 1 of: scor > 1"),
        ({"step1_if": "score > label"}, "'>' takes numbers, not texts, at character 9 of: score > label"),
        ({"step1_if": "score == 'high'"}, "'==' compares numbers with texts, at character 7 of"),
        ({"step1_if": "score + 1"}, "a condition is true or false; these are numbers"),
        ({"step2_if": "score > 1"}, "parameter 'step[2].if': there are 2 steps, the first is step[0]"),
        ({"step1_when": "score > 1"}, "parameter 'step[1].when': there is no such parameter; there are step[<index>].if"),
        ({"step1_if": "score > 1", "step1_unless": "flag"}, "parameter 'step[1].unless': step 1 (model 'halve') has another condition already"),
        ({"step1_if": "max(z) > 1"}, "is not written"),
        ({"step1_else": "x z"}, "parameter 'step[1].else': 'x z' is not of the form <fallback> -> <output>"),
        ({"step1_else": "x -> z, score -> z"}, "parameter 'step[1].else': 'z' gets two values"),
        ({"step1_else": "x -> score"}, "step 1 (model 'halve') makes no 'score'; it makes z"),
        ({"step1_else": "w -> z"}, "parameter 'step[1].else': no input and no step makes 'w'"),
        ({"step1_else": "label -> z"}, "parameter 'step[1].else': 'label' is BYTES, 'z' is FP32; they must be equal"),
        ({"step1_else": "z -> z"}, "is not written"),
    ],
)  # fmt: skip
async def test_a_condition_or_fallback_that_cannot_be_is_refused_at_the_load(
    refusal, parameters, message
):
    assert message in await refusal(judged(**parameters))


async def test_tensors_of_two_decoupled_steps_cannot_meet_in_a_condition(refusal):
    text = ensemble(
        "x FP32[-1] -> z FP32[-1]",
        "each x=x -> y=a",
        "each x=x -> y=b",
        "halve x=x -> y=z",
        step2_if="max(a) > max(b)",
    )

    assert await refusal(text) == (
        "in ensemble 'e', the condition of step 2 (model 'halve') reads answers of step 0 (model 'each') and of "
        "step 1 (model 'each'), which are decoupled: they may differ in number"
    )


async def test_a_plain_name_stays_with_core(opened, models):
    """The parameters that core reads by itself need no plugin: there is no step for their condition."""
    chain = await opened(judged(step1_if="flag"))

    assert [step.label for step in chain.steps] == [
        "step 0 (model 'judge')",
        "step 1 (model 'halve')",
    ]
    assert "z" in await answer(chain, 2) and "z" not in await answer(chain, -2)
