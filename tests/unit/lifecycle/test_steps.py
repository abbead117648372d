"""Ensembles whose steps do not fit their models are refused at load."""

from pathlib import Path

import pytest

from core.config import parse_text, signature_of
from core.errors import CoreError
from core.lifecycle.steps import check_steps
from core.pipeline.ensemble import steps_of


def signature(name, inputs, outputs, rest=""):
    """inputs and outputs: "x FP32 4, …"; an input may end with "optional"."""
    text = f'name: "{name}" {rest}'
    for kind, ios in (("input", inputs), ("output", outputs)):
        for io in ios.split(", "):
            tensor, dtype, dims, *optional = io.split(" ")
            text += (
                f' {kind} [ {{ name: "{tensor}" data_type: TYPE_{dtype} dims: [ {dims} ] '
                f"{'optional: true' if optional else ''} }} ]"
            )
    return signature_of(parse_text(text, name), Path(), 1)


def steps(*maps):
    """Each map: "model a=b c=d > e=f": the model's tensor = the ensemble's."""
    text = ""
    for one in maps:
        model, *words = one.split(" ")
        text += f' step {{ model_name: "{model}" model_version: -1'
        field = "input_map"
        for word in words:
            if word == ">":
                field = "output_map"
                continue
            key, value = word.split("=")
            text += f' {field} {{ key: "{key}" value: "{value}" }}'
        text += " }"
    return steps_of(parse_text(f"ensemble_scheduling {{ {text} }}", "test"))


ENSEMBLE = signature("e", "x FP32 4", "y FP32 4")
PLAIN = signature("m", "a FP32 4", "b FP32 4")
CHAIN = ("m a=x > b=t", "m a=t > b=y")


def refusal(*args):
    with pytest.raises(CoreError) as error:
        check_steps(*args)
    return error.value.message


def test_steps_that_fit_are_accepted():
    check_steps(ENSEMBLE, steps(*CHAIN), [PLAIN, PLAIN])


def test_a_tensor_that_the_model_does_not_have_is_refused_with_those_it_has():
    message = refusal(ENSEMBLE, steps("m z=x > b=y"), [PLAIN])

    assert message == "in ensemble 'e', step 0 (model 'm'): the model has no input 'z'; it has a"


def test_an_input_that_the_model_needs_must_be_mapped():
    two = signature("m", "a FP32 4, c FP32 4", "b FP32 4")
    optional = signature("m", "a FP32 4, c FP32 4 optional", "b FP32 4")

    assert "leaves out c" in refusal(ENSEMBLE, steps("m a=x > b=y"), [two])
    check_steps(ENSEMBLE, steps("m a=x > b=y"), [optional])


def test_two_datatypes_for_one_tensor_are_refused():
    other = signature("n", "a INT32 4", "b FP32 4")

    message = refusal(ENSEMBLE, steps("m a=x > b=t", "n a=t > b=y"), [PLAIN, other])

    assert message == (
        "in ensemble 'e', ensemble tensor 't': inconsistent data type: FP32 is inferred from "
        "model 'm' while INT32 is inferred from model 'n'"
    )


def test_two_shapes_for_one_tensor_are_refused():
    other = signature("n", "a FP32 5", "b FP32 4")

    message = refusal(ENSEMBLE, steps("n a=x > b=y"), [other])

    assert "inconsistent shape: [4] is inferred from model 'e' while [5]" in message


def test_any_size_fits_a_given_size():
    other = signature("n", "a FP32 -1", "b FP32 -1")

    check_steps(ENSEMBLE, steps("n a=x > b=y"), [other])


def test_a_batch_dimension_is_a_dimension():
    batching = signature("n", "a FP32 4", "b FP32 4", "max_batch_size: 8")
    flat = signature("n", "a FP32 -1, c FP32 4", "b FP32 -1")
    whole = signature("n", "a FP32 -1", "b FP32 -1")
    outer = signature("e", "x FP32 4", "y FP32 4", "max_batch_size: 8")

    assert "inconsistent shape" in refusal(ENSEMBLE, steps("n a=x > b=y"), [batching])
    assert "inconsistent shape" in refusal(outer, steps("n a=x c=x > b=y"), [flat])
    assert "inconsistent shape" in refusal(outer, steps("n a=x > b=y"), [whole])
    check_steps(outer, steps("n a=x > b=y"), [batching])


def test_an_ensemble_cannot_take_larger_batches_than_its_models():
    small = signature("n", "a FP32 4", "b FP32 4", "max_batch_size: 2")
    outer = signature("e", "x FP32 4", "y FP32 4", "max_batch_size: 8")

    message = refusal(outer, steps("n a=x > b=y"), [small])

    assert "allows maximum batch size 8" in message and "to be 2" in message


def test_answers_of_two_decoupled_models_cannot_be_joined():
    many = signature("d", "a FP32 4", "b FP32 4", "model_transaction_policy { decoupled: true }")
    join = signature("j", "a FP32 4, c FP32 4", "b FP32 4")
    one = steps("d a=x > b=s", "m a=s > b=t", "j a=s c=t > b=y")
    two = steps("d a=x > b=s", "d a=x > b=t", "j a=s c=t > b=y")

    check_steps(ENSEMBLE, one, [many, PLAIN, join])
    assert "step of model 'j' receives inputs originated from different decoupled models" in (
        refusal(ENSEMBLE, two, [many, many, join])
    )
