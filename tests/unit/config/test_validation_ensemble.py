"""Ensembles whose steps do not fit together. The texts are those that tritonserver logged."""

# ruff: noqa: E501 (a text that somebody searches for stays on one line)

import pytest

from core.config import fill, normalise, parse_text, validate
from core.errors import CoreError, Kind


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


def check(text: str) -> None:
    config = parse_text(text, "test")
    fill(config, "m")
    normalise(config, {}, [])
    validate(config)


def refusal(text: str) -> str:
    with pytest.raises(CoreError) as caught:
        check(text)
    assert caught.value.kind is Kind.INVALID
    return caught.value.message


@pytest.mark.parametrize(
    "text",
    [
        ensemble(step("A", "Z")),
        ensemble(step("B", "Z") + step("A", "B")),
        ensemble(step("A", "BC") + step("B", "D") + step("C", "E") + step("DE", "Z")),
        ensemble(step("A", "YZ") + step("Y", "W"), outputs="ZYW"),
    ],
)
def test_steps_may_come_in_any_order_that_data_can_flow_through(text):
    check(text)


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
def test_an_ensemble_that_does_not_fit_together_is_refused(text, expected):
    assert refusal(text) == expected


def test_a_cycle_is_never_written():
    text = ensemble(step("AM", "Z") + step("Z", "M"))

    assert refusal(text).startswith("output 'Z' for ensemble 'm' is not written")
