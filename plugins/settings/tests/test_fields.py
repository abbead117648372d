"""Settings in JSON: what is read, and the errors for what is wrong."""

import pytest
from core_settings.fields import MOST_US, Reader

from core.errors import CoreError, Kind

POLICY = {
    "timeout_action": "DELAY",
    "default_timeout_microseconds": 5,
    "allow_timeout_override": True,
    "max_queue_size": 7,
}
WHOLE = {
    "dynamic_batching": {
        "preferred_batch_size": [2, 4],
        "max_queue_delay_microseconds": 10,
        "preserve_ordering": False,
        "priority_levels": 2,
        "default_priority_level": 1,
        "default_queue_policy": POLICY,
        "priority_queue_policy": {"2": POLICY},
    },
    "sequence_batching": {
        "max_sequence_idle_microseconds": 1,
        "direct": {"max_queue_delay_microseconds": 1, "minimum_slot_utilization": 0.5},
        "oldest": {"max_queue_delay_microseconds": 1, "preferred_batch_size": [1]},
    },
    "response_cache": {"enable": True},
    "rate_limiter": {
        "m": {"priority": 2, "resources": [{"name": "R", "count": 3, "global": True}]}
    },
}


def read(value):
    return Reader("settings of model 'm'").read(value)


def error(value):
    with pytest.raises(CoreError) as caught:
        read(value)
    assert caught.value.kind is Kind.INVALID
    text = caught.value.message
    assert text.startswith("settings of model 'm'")
    return text.removeprefix("settings of model 'm'").lstrip(": ")


def test_every_live_field_is_read():
    assert read(WHOLE) == WHOLE


def test_null_is_kept_for_the_merge():
    assert read({"dynamic_batching": None}) == {"dynamic_batching": None}
    assert read({"rate_limiter": {"m": None}}) == {"rate_limiter": {"m": None}}
    given = {"dynamic_batching": {"priority_queue_policy": {"1": None}, "priority_levels": None}}
    assert read(given) == given


def test_names_of_actions_have_any_case():
    given = {"dynamic_batching": {"default_queue_policy": {"timeout_action": "reject"}}}

    found = read(given)["dynamic_batching"]["default_queue_policy"]

    assert found == {"timeout_action": "REJECT"}


@pytest.mark.parametrize("value", [None, [], 3, "x"])
def test_settings_are_an_object(value):
    assert ", expected an object with dynamic_batching, " in error(value)


@pytest.mark.parametrize(
    ("batching", "text"),
    [
        (
            {"max_queue_delay_microseconds": "fast"},
            'max_queue_delay_microseconds is "fast", expected a whole number from 0 to '
            f"{MOST_US} microseconds",
        ),
        ({"max_queue_delay_microseconds": True}, "is true, expected a whole number from 0"),
        ({"max_queue_delay_microseconds": 1.5}, "is 1.5, expected a whole number from 0"),
        ({"max_queue_delay_microseconds": -1}, "is -1, expected a whole number from 0"),
        ({"max_queue_delay_microseconds": 2**63}, "expected a whole number from 0"),
        ({"preferred_batch_size": 4}, "preferred_batch_size is 4, expected a list of at most 64"),
        ({"preferred_batch_size": [4, None]}, "preferred_batch_size[1] is null, expected a whole"),
        ({"preserve_ordering": 1}, "preserve_ordering is 1, expected true or false"),
        (
            {"default_queue_policy": {"timeout_action": "DROP"}},
            'timeout_action is "DROP", expected "REJECT" or "DELAY"',
        ),
        (
            {"default_queue_policy": {"max_queue_sise": 1}},
            "default_queue_policy has no field \"max_queue_sise\"; did you mean 'max_queue_size'?",
        ),
        (
            {"priority_queue_policy": {"0": {}}},
            'priority_queue_policy has the key "0", expected a level from 1 to 1000',
        ),
        (
            {"priority_queue_policy": {"1" * 5000: {}}},  # int() refuses so many digits
            'priority_queue_policy has the key "1111',
        ),
        ({"priority_queue_policy": {"1001": {}}}, "expected a level from 1 to 1000"),
        (
            {"priority_queue_policy": [1]},
            'expected an object such as {"1": {"max_queue_size": 10}}',
        ),
        ({"priority_levels": 10**6}, "priority_levels is 1000000, expected a whole number from 0"),
    ],
)
def test_errors_name_field_value_and_what_is_expected(batching, text):
    found = error({"dynamic_batching": batching})

    assert found.startswith("dynamic_batching.") and text in found


def test_a_field_that_needs_a_load_says_so():
    assert error({"max_batch_size": 4}).startswith(
        "max_batch_size cannot change while the model serves: change the configuration, and load the "
        "model again."
    )
    found = error({"sequence_batching": {"oldest": {"max_candidate_sequences": 4}}})
    assert found.startswith("sequence_batching.oldest.max_candidate_sequences cannot change")


def test_an_unknown_field_gets_the_nearest_name():
    assert error({"dynamic_batchin": {}}).startswith(
        "has no field \"dynamic_batchin\"; did you mean 'dynamic_batching'?"
    )


def test_resources_are_read_as_a_whole():
    limiter = {"m": {"resources": [{"name": None}]}}

    assert error({"rate_limiter": limiter}) == (
        "rate_limiter.m.resources[0].name is null, expected a text of 1 to 256 characters"
    )
    assert "rate_limiter is 3, expected an object such as" in error({"rate_limiter": 3})
