"""Ensembles whose steps do not fit their models are refused at load."""

from pathlib import Path

import pytest

from core.config import parse_text, signature_of
from core.errors import CoreError, Kind
from core.lifecycle.steps import check_steps, ranks_of
from core.pipeline.ensemble import steps_of


def signature(name, inputs, outputs, rest=""):
    """inputs and outputs: "x FP32 4,2, …"; what follows the dims is the rest of the tensor."""
    text = f'name: "{name}" {rest}'
    for kind, ios in (("input", inputs), ("output", outputs)):
        for io in ios.split(", "):
            tensor, dtype, dims, *more = io.split(" ", 3)
            text += (
                f' {kind} [ {{ name: "{tensor}" data_type: TYPE_{dtype} dims: [ {dims} ] '
                f"{' '.join(more)} }} ]"
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
    assert error.value.kind is Kind.INVALID
    return error.value.message


def test_steps_that_fit_are_accepted():
    check_steps(ENSEMBLE, steps(*CHAIN), [PLAIN, PLAIN])


def test_a_tensor_that_the_model_does_not_have_is_refused_with_those_it_has():
    message = refusal(ENSEMBLE, steps("m z=x > b=y"), [PLAIN])

    assert message == "in ensemble 'e', step 0 (model 'm'): the model has no input 'z'; it has a"
    assert refusal(ENSEMBLE, steps("m a=x > z=y"), [PLAIN]) == (
        "in ensemble 'e', step 0 (model 'm'): the model has no output 'z'; it has b"
    )


def test_an_input_that_the_model_needs_must_be_mapped():
    two = signature("m", "a FP32 4, c FP32 4", "b FP32 4")
    optional = signature("m", "a FP32 4, c FP32 4 optional: true", "b FP32 4")

    assert refusal(ENSEMBLE, steps("m a=x > b=y"), [two]) == (
        "in ensemble 'e', step 0 (model 'm'): input_map leaves out c, which the model needs"
    )
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

    assert message == (
        "in ensemble 'e', ensemble tensor 'x': inconsistent shape: [4] is inferred from model 'e' while "
        "[5] is inferred from model 'n'"
    )


def test_any_size_fits_a_given_size():
    other = signature("n", "a FP32 -1", "b FP32 -1")

    check_steps(ENSEMBLE, steps("n a=x > b=y"), [other])


BATCHING = "max_batch_size: 8"
OUTER = signature("e", "x FP32 4", "y FP32 4", BATCHING)


@pytest.mark.parametrize(
    ("ensemble", "model"),
    [
        (OUTER, signature("n", "a FP32 4", "b FP32 4", BATCHING)),
        (OUTER, signature("n", "a FP32 4", "b FP32 4")),  # one row at a time
        (OUTER, signature("n", "a FP32 -1,4", "b FP32 -1,4")),  # the whole batch is its tensor
        (ENSEMBLE, signature("n", "a FP32 4", "b FP32 4", BATCHING)),  # a batch of one row
        (
            signature("e", "x FP32 -1,4", "y FP32 -1,4"),
            signature("n", "a FP32 4", "b FP32 4", BATCHING),
        ),
    ],
)
def test_shapes_fit_with_the_batch_dimension_or_without_it(ensemble, model):
    check_steps(ensemble, steps("n a=x > b=y"), [model])


@pytest.mark.parametrize(
    ("ensemble", "model", "shapes"),
    [
        (OUTER, signature("n", "a FP32 2,5", "b FP32 4"), "[-1, 4] is inferred from model 'e' while [2, 5]"),
        (OUTER, signature("n", "a FP32 5", "b FP32 4"), "[-1, 4] is inferred from model 'e' while [5]"),
        (ENSEMBLE, signature("n", "a FP32 2,4", "b FP32 4", BATCHING),
         "[4] is inferred from model 'e' while [-1, 2, 4]"),
    ],
)  # fmt: skip
def test_shapes_that_fit_neither_way_are_refused(ensemble, model, shapes):
    found = refusal(ensemble, steps("n a=x > b=y"), [model])

    assert f"inconsistent shape: {shapes} is inferred from model 'n'" in found


def test_a_reshape_of_the_ensemble_is_done_before_its_steps():
    reshaped = "reshape { shape: 4 }"
    outer = signature("e", f"x FP32 2,2 {reshaped}", f"y FP32 2,2 {reshaped}")
    flat = signature("e", "x FP32 4 reshape { shape: [2,2] }", "y FP32 4")

    check_steps(outer, steps("m a=x > b=y"), [PLAIN])
    assert "inconsistent shape: [2, 2] is inferred from model 'e' while [4]" in refusal(
        flat, steps("m a=x > b=y"), [PLAIN]
    )


def test_ranks_are_compared_if_only_one_side_batches():
    batching = signature("n", "a FP32 4", "b FP32 4", BATCHING)
    found = steps("m a=x > b=t", "n a=t > b=y")

    outputs = ranks_of(ENSEMBLE, found, [PLAIN, batching])

    assert [step.ranks for step in found] == [None, {"a": 2}]
    assert outputs == {"y": 1}
    assert ranks_of(ENSEMBLE, steps(*CHAIN), [PLAIN, PLAIN]) is None


def test_an_ensemble_cannot_take_larger_batches_than_its_models():
    small = signature("n", "a FP32 4", "b FP32 4", "max_batch_size: 2")
    outer = signature("e", "x FP32 4", "y FP32 4", "max_batch_size: 8")

    message = refusal(outer, steps("n a=x > b=y"), [small])

    assert message == (
        "ensemble 'e' allows maximum batch size 8, but it contains model 'n' which only allows maximum "
        "batch size to be 2"
    )


def test_answers_of_two_decoupled_models_cannot_be_joined():
    many = signature("d", "a FP32 4", "b FP32 4", "model_transaction_policy { decoupled: true }")
    join = signature("j", "a FP32 4, c FP32 4", "b FP32 4")
    one = steps("d a=x > b=s", "m a=s > b=t", "j a=s c=t > b=y")
    two = steps("d a=x > b=s", "d a=x > b=t", "j a=s c=t > b=y")

    check_steps(ENSEMBLE, one, [many, PLAIN, join])
    assert "step of model 'j' receives inputs originated from different decoupled models" in (
        refusal(ENSEMBLE, two, [many, many, join])
    )
