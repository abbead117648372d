"""The fields of a configuration that a backend may change."""

import pytest

from core.config import complete, parse_text
from core.errors import CoreError, Kind

FOUND = """
name: "other" max_batch_size: 4
input [ { name: "x" data_type: TYPE_FP32 dims: [ 3 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ 3 ] } ]
dynamic_batching { max_queue_delay_microseconds: 5 }
model_transaction_policy { decoupled: true }
instance_group { count: 9 }
parameters { key: "k" value { string_value: "v" } }
"""


def completed(before, found=FOUND):
    config = parse_text(before, "test")
    complete(config, parse_text(found, "test"))
    return config


def test_tensors_batch_size_scheduler_and_decoupling_are_taken_over():
    config = completed('name: "m"')

    assert config.max_batch_size == 4
    assert [io.name for io in config.input] == ["x"]
    assert [io.name for io in config.output] == ["y"]
    assert config.dynamic_batching.max_queue_delay_microseconds == 5
    assert config.model_transaction_policy.decoupled


def test_other_fields_are_unchanged():
    config = completed('name: "m"')

    assert config.name == "m"
    assert not config.instance_group


def test_a_parameter_is_added_and_a_configured_one_is_unchanged():
    added = completed('name: "m"')
    kept = completed('parameters { key: "k" value { string_value: "mine" } }')

    assert added.parameters["k"].string_value == "v"
    assert kept.parameters["k"].string_value == "mine"


def test_tensors_are_replaced_and_not_added():
    config = completed('input { name: "old" } input { name: "x" }')

    assert [io.name for io in config.input] == ["x"]


def test_a_configured_scheduler_is_unchanged():
    config = completed("dynamic_batching { max_queue_delay_microseconds: 77 }")

    assert config.dynamic_batching.max_queue_delay_microseconds == 77


@pytest.mark.parametrize("found", [FOUND, ""])
def test_another_scheduler_is_refused(found):
    with pytest.raises(
        CoreError, match="Cannot update scheduling choice from sequence_batching"
    ) as caught:
        completed("sequence_batching { }", found)

    assert caught.value.kind is Kind.INTERNAL


def test_a_backend_without_a_transaction_policy_keeps_decoupled():
    before = "model_transaction_policy { decoupled: true }"

    assert completed(before, "").model_transaction_policy.decoupled
