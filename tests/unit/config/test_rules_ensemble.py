"""Ensembles with inconsistent steps. The texts are those that tritonserver logged."""

# ruff: noqa: E501 (a searchable text stays on one line)

import re
from pathlib import Path

import pytest


def tensors(kind: str, names: str) -> str:
    return " ".join(f'{kind} {{ name: "{name}" data_type: TYPE_FP32 dims: -1 }}' for name in names)


def step(reads: str, writes: str, model: str = "part") -> str:
    """A step that reads ensemble tensors of one letter each, and writes others."""
    maps = [f'input_map {{ key: "in_{name}" value: "{name}" }}' for name in reads]
    maps += [f'output_map {{ key: "out_{name}" value: "{name}" }}' for name in writes]
    return f'step {{ model_name: "{model}" model_version: -1 {" ".join(maps)} }} '


def ensemble(steps: str, inputs: str = "A", outputs: str = "Z", more: str = "") -> str:
    io = f"{tensors('input', inputs)} {tensors('output', outputs)}"
    return f'platform: "ensemble" {io} ensemble_scheduling {{ {steps} }} {more}'


@pytest.mark.parametrize(
    "text",
    [
        ensemble(step("A", "Z")),
        ensemble(step("B", "Z") + step("A", "B")),
        ensemble(step("A", "BC") + step("B", "D") + step("C", "E") + step("DE", "Z")),
        ensemble(step("A", "YZ") + step("Y", "W"), outputs="ZYW"),
    ],
)
def test_steps_may_come_in_any_order_that_data_can_flow_through(settled, text):
    settled(text)


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ('platform: "ensemble"', "ensemble scheduling must be set for ensemble m whose platform is ensemble"),
        ('backend: "python" ensemble_scheduling { }', "ensemble scheduling cannot be set for model 'm' whose platform is not ensemble"),
        (ensemble(step("A", "Z"), more="instance_group { }"), "instance group should not be specified for ensemble 'm'"),
        (ensemble(step("A", "Z"), more="optimization { }"), "optimization should not be specified for ensemble 'm'"),
        (ensemble(step("A", "Z"), more="model_warmup { }"), "model_warmup can not be specified for ensemble 'm'"),
        (ensemble(""), "must specify 'step' for ensemble 'm'"),
        (ensemble(step("A", "Z", model="")), "must specify 'model_name' in step 0 of ensemble 'm'"),
        (ensemble(step("A", "Z") + step("", "Y")), "must specify 'input_map' in step 1 of ensemble 'm'"),
        (ensemble(step("A", "")), "must specify 'output_map' in step 0 of ensemble 'm'"),
        (ensemble(step("A", "Z") * 2), "ensemble tensor 'Z' can appear in an output map only once for ensemble 'm' step 1"),
        (ensemble(step("A", "Z"), inputs="AQ"), "ensemble input 'Q' for ensemble 'm' is not used"),
        (ensemble(step("A", "Z"), outputs="ZQ"), "ensemble output 'Q' for ensemble 'm' is not used"),
        (ensemble(step("AB", "Z")), "output 'Z' for ensemble 'm' is not written: at least one of its depending tensors, 'B', is not connected"),
        (ensemble(step("A", "M") + step("MN", "Z")),
         "output 'Z' for ensemble 'm' is not written: at least one of its depending tensors, 'N', is not connected"),
        (ensemble(step("A", "Z") + step("AW", "T")), "ensemble tensor 'T' is unused in ensemble 'm'"),
        (ensemble(step("A", "ZT")), "ensemble tensor 'T' is unused in ensemble 'm'"),
    ],
)  # fmt: skip
def test_an_ensemble_that_does_not_fit_together_is_refused(refusal, text, expected):
    assert refusal(text) == expected


def test_a_cycle_is_never_written(refusal):
    text = ensemble(step("AM", "Z") + step("Z", "M"))

    assert refusal(text).startswith("output 'Z' for ensemble 'm' is not written")


def condition(key: str, tensor: str) -> str:
    return f'parameters {{ key: "{key}" value {{ string_value: "{tensor}" }} }} '


TWO = step("A", "B") + step("A", "Z")


@pytest.mark.parametrize(
    "more",
    [
        condition("step[1].if", "B"),
        condition("step[0].unless", "A") + condition("step[1].if", "B"),
        condition("other", "step[9]"),
    ],
)
def test_a_step_may_depend_on_a_tensor_as_its_condition(settled, more):
    settled(ensemble(TWO, outputs="Z" if "step[1]" in more else "ZB", more=more))


def test_an_input_may_be_used_only_as_a_condition(settled):
    settled(ensemble(step("A", "Z"), inputs="AC", more=condition("step[0].if", "C")))


@pytest.mark.parametrize(
    "more, message",
    [
        (
            condition("step[1].if", "Q"),
            "in ensemble 'm', step 1 (model 'part'): no input and no step makes 'Q', the condition; there are A, B, Z",
        ),
        (
            condition("step[2].if", "A"),
            "in ensemble 'm', parameter 'step[2].if': there are 2 steps, the first is step[0]",
        ),
        (
            condition("step[1].when", "A"),
            "in ensemble 'm', parameter 'step[1].when': the conditions of steps are 'step[<index>].if' and 'step[<index>].unless'",
        ),
        (
            condition("step[1].if", ""),
            "in ensemble 'm', parameter 'step[1].if': string_value must be the name of a BOOL tensor of the ensemble",
        ),
        (
            condition("step[1].if", "A") + condition("step[1].unless", "A"),
            "in ensemble 'm', parameter 'step[1].unless': step 1 has another condition already; it can have one",
        ),
        (condition("step[1].if", "Z"), "output 'Z' for ensemble 'm' is not written"),
    ],
)
def test_a_condition_that_cannot_be_is_refused(refusal, more, message):
    assert refusal(ensemble(TWO, outputs="ZB", more=more)) == message


def test_the_ensembles_of_the_manual_are_valid(settled):
    page = (Path(__file__).parents[3] / "docs" / "serve" / "ensembles.md").read_text()

    found = [
        block for block in re.findall(r"```protobuf\n(.*?)```", page, re.S) if "platform:" in block
    ]

    assert len(found) == 2
    for block in found:
        settled(block)
