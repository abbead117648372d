"""Rules of dynamic_batching. Texts are Triton's up to the colon; the rest names the field."""

# ruff: noqa: E501 (a searchable text stays on one line)

import pytest

MODEL = (
    'backend: "python" max_batch_size: 4 '
    'input { name: "x" data_type: TYPE_FP32 dims: -1 } output { name: "y" data_type: TYPE_FP32 dims: -1 } '
)
TWO = "priority_levels: 2 default_priority_level: 1 "
DELAY = "timeout_action: DELAY default_timeout_microseconds: 1"
NO_DELAY = "Queue policy can not have DELAY as timeout action when 'preserve_ordering' is true for m: dynamic_batching."
POSITIVE = "dynamic batching preferred size must be positive for m: dynamic_batching."


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("preferred_batch_size: 0", POSITIVE + "preferred_batch_size[0] is 0"),
        ("preferred_batch_size: [4, -1]", POSITIVE + "preferred_batch_size[1] is -1"),
        ("preferred_batch_size: [2, 9]",
         "dynamic batching preferred size must be <= max batch size for m: dynamic_batching.preferred_batch_size[1] is 9, max_batch_size is 4"),
        ("priority_levels: 2", "default priority level must be in range [1, 2] for m: dynamic_batching.default_priority_level is 0"),
        ("priority_levels: 2 default_priority_level: 3",
         "default priority level must be in range [1, 2] for m: dynamic_batching.default_priority_level is 3"),
        (TWO + "priority_queue_policy { key: 5 value { } }",
         "priority queue policy must have priority level in range [1, 2] for m: dynamic_batching.priority_queue_policy has the key 5"),
        (TWO + "priority_queue_policy { key: 0 value { } }",
         "priority queue policy must have priority level in range [1, 2] for m: dynamic_batching.priority_queue_policy has the key 0"),
        (TWO + "preserve_ordering: true",
         "Only one priority level is allowed when 'preserve_ordering' is true for m: dynamic_batching.priority_levels is 2"),
        (f"preserve_ordering: true default_queue_policy {{ {DELAY} }}", NO_DELAY + "default_queue_policy.timeout_action"),
        (f"preserve_ordering: true priority_levels: 1 default_priority_level: 1 priority_queue_policy {{ key: 1 value {{ {DELAY} }} }}",
         NO_DELAY + "priority_queue_policy[1].timeout_action"),
        (f"preserve_ordering: true priority_queue_policy {{ key: 3 value {{ {DELAY} }} }}",
         NO_DELAY + "priority_queue_policy[3].timeout_action"),
    ],
)  # fmt: skip
def test_a_dynamic_batcher_is_refused(refusal, text, expected):
    assert refusal(MODEL + f"dynamic_batching {{ {text} }}") == expected


def test_a_model_without_a_batch_dimension_has_no_preferred_size(refusal):
    text = MODEL.replace("max_batch_size: 4", "") + "dynamic_batching { preferred_batch_size: 1 }"

    assert refusal(text) == (
        "dynamic batching preferred size must be <= max batch size for m: "
        "dynamic_batching.preferred_batch_size[0] is 1, max_batch_size is 0"
    )


PLAIN = {
    "preferred_batch_size": [4],
    "max_queue_delay_microseconds": 0,
    "preserve_ordering": False,
    "priority_levels": 0,
    "default_priority_level": 0,
    "priority_queue_policy": {},
}
POLICY = {
    "timeout_action": "REJECT",
    "default_timeout_microseconds": 0,
    "allow_timeout_override": False,
    "max_queue_size": 0,
}


@pytest.mark.parametrize(
    ("text", "changes"),
    [
        ("", {}),
        ("preferred_batch_size: [1, 4]", {"preferred_batch_size": [1, 4]}),
        ("default_priority_level: 1", {"default_priority_level": 1}),
        ("priority_queue_policy { key: 5 value { } }", {"priority_queue_policy": {"5": POLICY}}),
        ("priority_levels: 2 default_priority_level: 2", {"priority_levels": 2, "default_priority_level": 2}),
        ("preserve_ordering: true priority_levels: 1 default_priority_level: 1",
         {"preserve_ordering": True, "priority_levels": 1, "default_priority_level": 1}),
        ("preserve_ordering: true default_queue_policy { timeout_action: DELAY }",
         {"preserve_ordering": True, "default_queue_policy": {**POLICY, "timeout_action": "DELAY"}}),
        ("max_queue_delay_microseconds: 18446744073709551615", {"max_queue_delay_microseconds": 2**64 - 1}),
    ],
)  # fmt: skip
def test_a_dynamic_batcher_is_accepted(settled, text, changes):
    assert settled(MODEL + f"dynamic_batching {{ {text} }}")["dynamic_batching"] == PLAIN | changes


def test_a_model_without_a_batch_dimension_may_have_a_queue(settled):
    text = MODEL.replace("max_batch_size: 4", "") + "dynamic_batching { }"

    assert settled(text)["dynamic_batching"] == PLAIN | {"preferred_batch_size": []}
