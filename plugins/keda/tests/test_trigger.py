"""The metadata of a trigger: members, defaults, and errors that name the ScaledObject."""

import pytest
from core_keda.trigger import Trigger

from core.errors import CoreError


def refusal(**metadata):
    with pytest.raises(CoreError) as error:
        Trigger.of(metadata, "chat")
    return error.value.message


def test_without_metadata_a_tenth_of_a_second_of_waiting_is_the_target():
    assert Trigger.of({}, "chat") == Trigger("", "wait_seconds", 0.1, 0.0)


def test_the_metric_has_the_names_of_signal_and_model():
    found = Trigger.of({"model": "m", "signal": "pending", "target": "8"}, "chat")

    assert found.metric_name == "core-pending-m"
    assert Trigger.of({}, "chat").metric_name == "core-wait_seconds"


def test_members_of_keda_are_ignored():
    metadata = {"scalerAddress": "core:8001", "tlsCertFile": "/x", "enableTLS": "true", "new": "1"}

    assert Trigger.of(metadata, "chat") == Trigger()


def test_a_misspelt_member_is_refused_with_the_right_one():
    assert refusal(targett="1").startswith(
        "the trigger of ScaledObject 'chat' has metadata 'targett'"
    )
    assert "did you mean 'target'?" in refusal(targett="1")


def test_an_unknown_signal_is_refused_with_the_known_ones():
    text = refusal(signal="wait")

    assert "has signal 'wait', which is unknown" in text
    assert "wait_seconds, pending, in_flight" in text


def test_a_count_of_requests_needs_a_target():
    assert "needs 'target'" in refusal(signal="pending")


@pytest.mark.parametrize("text", ["", "x", "nan", "inf", "1s"])
@pytest.mark.parametrize("member", ["target", "activation"])
def test_a_number_must_be_one(member, text):
    assert f"has {member} '{text}', which is no number" in refusal(**{member: text})


@pytest.mark.parametrize("text", ["0", "-1"])
def test_a_target_is_above_zero(text):
    assert "it must be above 0" in refusal(target=text)
