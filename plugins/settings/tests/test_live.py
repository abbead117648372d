"""Settings in a configuration: merged, put in, and compared."""

from core_settings.live import as_text, configured, difference, live_part, merged

from core import config as configuration

from .conftest import BATCHING, CONFIG
from .test_fields import WHOLE


def config_of(more=BATCHING):
    config = configuration.parse_text(f'name: "m" {CONFIG} {more}', "test")
    configuration.normalise(config, {}, [])
    return config


def test_a_merge_replaces_lists_and_values_and_null_removes():
    before = {"a": {"b": 1, "c": [1, 2]}, "d": {"e": True}}

    assert merged(before, {"a": {"c": [3]}, "d": None}) == {"a": {"b": 1, "c": [3]}}
    assert merged(before, {"a": {"b": None, "c": None}}) == {"d": {"e": True}}
    assert merged(before, {"d": {"f": {"g": 1}}})["d"] == {"e": True, "f": {"g": 1}}
    assert before == {"a": {"b": 1, "c": [1, 2]}, "d": {"e": True}}


def test_every_field_is_put_into_a_copy():
    config = config_of()
    settings = {
        name: WHOLE[name] for name in ("dynamic_batching", "response_cache", "rate_limiter")
    }

    found = configured(config, settings)

    assert {name: live_part(found)[name] for name in settings} == settings
    assert live_part(config)["dynamic_batching"]["max_queue_delay_microseconds"] == 100
    assert found.max_batch_size == 8 and found.input == config.input


def test_settings_take_precedence_field_by_field():
    file = config_of(
        "dynamic_batching { preferred_batch_size: [ 2, 8 ] default_queue_policy { max_queue_size: 5 } }"
    )

    found = configured(
        file, {"dynamic_batching": {"default_queue_policy": {"default_timeout_microseconds": 9}}}
    )

    policy = found.dynamic_batching.default_queue_policy
    assert (policy.max_queue_size, policy.default_timeout_microseconds) == (5, 9)
    assert list(found.dynamic_batching.preferred_batch_size) == [2, 8]


def test_sequences_have_the_fields_of_their_strategy():
    file = config_of("sequence_batching { oldest { max_candidate_sequences: 4 } }")
    settings = {"oldest": {"preferred_batch_size": [4], "max_queue_delay_microseconds": 5}}

    found = configured(file, {"sequence_batching": settings})

    assert found.sequence_batching.oldest.max_candidate_sequences == 4
    assert live_part(found)["sequence_batching"] == {
        "max_sequence_idle_microseconds": 1_000_000,
        "oldest": {"preferred_batch_size": [4], "max_queue_delay_microseconds": 5},
    }


def test_a_difference_names_fields_from_and_to():
    before = {"a": {"b": 1, "c": [1]}, "d": {"e": 1}}
    after = {"a": {"b": 1, "c": [1, 2]}, "f": {"g": False}}

    changes = difference(before, after)

    assert changes == {
        "a.c": {"from": [1], "to": [1, 2]},
        "d.e": {"from": 1, "to": None},
        "f.g": {"from": None, "to": False},
    }
    assert as_text(changes) == "a.c [1] → [1, 2], d.e 1 → null, f.g null → false"
