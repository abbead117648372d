"""The configuration in triton_python_backend_utils: how a model completes it, and what it finds there."""

import json

import pytest
import triton_python_backend_utils as pb_utils


def config(**changes):
    return {
        "name": "m",
        "max_batch_size": 2,
        "input": [{"name": "x", "data_type": "TYPE_FP32", "dims": [3], "optional": False}],
        "output": [{"name": "y", "data_type": "TYPE_INVALID", "dims": []}],
        **changes,
    }


def model_config(**changes):
    return pb_utils.ModelConfig(json.dumps(config(**changes)))


def test_entries_that_agree_are_taken_over():
    found = model_config()
    found.add_input({"name": "x", "data_type": "TYPE_FP32", "dims": [3]})
    found.add_input({"name": "z", "data_type": "TYPE_INT8", "dims": [-1], "optional": True})
    found.add_output({"name": "y", "data_type": "TYPE_INT8", "dims": [1, 2]})
    found.set_max_batch_size(8)
    found.set_dynamic_batching()
    found.set_model_transaction_policy({"decoupled": False})

    assert found.as_dict() == config(
        max_batch_size=8,
        input=[
            {"name": "x", "data_type": "TYPE_FP32", "dims": [3], "optional": False},
            {"name": "z", "data_type": "TYPE_INT8", "dims": [-1], "optional": True},
        ],
        output=[{"name": "y", "data_type": "TYPE_INT8", "dims": [1, 2]}],
        dynamic_batching={},
        model_transaction_policy={"decoupled": False},
    )


CONTRADICTIONS = [
    (
        lambda c: c.set_max_batch_size(1),
        "configuration specified max_batch_size 2, but in auto-complete-config function for model "
        "'m' specified max_batch_size 1",
    ),
    (
        lambda c: c.add_input({"name": "x", "data_type": "TYPE_INT8", "dims": [3]}),
        "unable to load model 'm', configuration expects datatype TYPE_FP32 for input 'x', model "
        "provides TYPE_INT8",
    ),
    (
        lambda c: c.add_input({"name": "x", "data_type": "TYPE_FP32", "dims": [4]}),
        "model 'm', tensor 'x': the model expects dims [4] but the model configuration specifies "
        "dims [3]",
    ),
    (
        lambda c: c.add_input(
            {"name": "x", "data_type": "TYPE_FP32", "dims": [3], "optional": True}
        ),
        "model 'm', tensor 'x': the model expects optional True but the model configuration "
        "specifies optional False",
    ),
    (
        lambda c: c.add_input({"name": "q", "data_type": "TYPE_FP32", "dims": [3], "more": 1}),
        "input 'q' in auto-complete-config function for model 'm' contains property other than "
        "'name', 'data_type', 'dims' and 'optional'.",
    ),
    (
        lambda c: c.add_output(
            {"name": "q", "data_type": "TYPE_FP32", "dims": [3], "optional": True}
        ),
        "output 'q' in auto-complete-config function for model 'm' contains property other than "
        "'name', 'data_type' and 'dims'.",
    ),
    (
        lambda c: c.add_input({"data_type": "TYPE_FP32", "dims": [3]}),
        "input in auto-complete-config function for model 'm' is missing 'name' property.",
    ),
    (
        lambda c: c.add_output({"name": "q", "dims": [3]}),
        "output 'q' in auto-complete-config function for model 'm' is missing 'data_type' property.",
    ),
    (
        lambda c: c.add_output({"name": "q", "data_type": "TYPE_FP32"}),
        "output 'q' in auto-complete-config function for model 'm' is missing 'dims' property.",
    ),
    (
        lambda c: c.set_model_transaction_policy({"coupled": True}),
        "model transaction property in auto-complete-config function for model 'm' contains "
        "property other than 'decoupled'.",
    ),
]


@pytest.mark.parametrize("change,text", CONTRADICTIONS)
def test_a_contradiction_to_the_configuration_is_refused(change, text):
    found = model_config()

    with pytest.raises(ValueError) as error:
        change(found)

    assert str(error.value) == text


def test_another_scheduler_stays():
    found = model_config(sequence_batching={})

    with pytest.raises(ValueError) as error:
        found.set_dynamic_batching()

    assert str(error.value) == (
        "Configuration specified scheduling_choice as 'sequence_batching', but "
        "auto-complete-config function for model 'm' tries to set scheduling_choice as "
        "'dynamic_batching'"
    )


def test_the_transaction_policy_stays():
    found = model_config(model_transaction_policy={"decoupled": True})

    with pytest.raises(ValueError) as error:
        found.set_model_transaction_policy({"decoupled": False})

    assert str(error.value) == (
        "trying to change decoupled property in auto-complete-config for model 'm', which is "
        "already set to 'True'."
    )


def test_entries_are_found_by_name():
    assert pb_utils.get_input_config_by_name(config(), "x")["dims"] == [3]
    assert pb_utils.get_output_config_by_name(config(), "y")["dims"] == []
    assert pb_utils.get_input_config_by_name(config(), "y") is None
    assert pb_utils.get_output_config_by_name({}, "y") is None


def test_whether_a_model_is_decoupled():
    decoupled = pb_utils.using_decoupled_model_transaction_policy
    assert decoupled({"model_transaction_policy": {"decoupled": True}})
    assert not decoupled({"model_transaction_policy": {"decoupled": False}})
    assert not decoupled({})
