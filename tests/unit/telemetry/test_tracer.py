"""Tracer: the settings of the server and of its models, as they change."""

import asyncio
import logging

import pytest
from unit.telemetry.kept_traces import ON, traced

from core.errors import CoreError
from core.request import InferenceRequest
from core.response import Reply


def test_a_server_without_tracing_is_off(tracer):
    assert not tracer().on
    assert not tracer(*ON, file=False).on
    assert tracer(*ON).on


async def test_changes_turn_it_on_and_off(tracer):
    found = tracer()

    found.change({"trace_level": ["TIMESTAMPS"], "trace_rate": "1"})
    assert await traced(found)

    found.change({"trace_level": ["OFF"]})
    assert not found.on


def test_a_refused_change_has_no_effect(tracer):
    found = tracer()
    before = found.settings()

    with pytest.raises(CoreError):
        found.change({"trace_rate": "5", "trace_count": "some"})

    assert found.settings() == before


def test_models_follow_the_server_but_for_their_own_settings(tracer):
    found = tracer()

    found.change({"trace_rate": "3"}, "m")
    found.change({"trace_rate": "7", "log_frequency": "2"})

    assert (found.settings("m")["trace_rate"], found.settings("m")["log_frequency"]) == ("3", "2")
    assert found.settings("other")["trace_rate"] == "7"


def test_null_clears_a_setting(tracer):
    found = tracer(("rate", "50"))
    found.change({"trace_rate": "7"})
    found.change({"trace_rate": "3"}, "m")

    assert found.change({"trace_rate": None}, "m")["trace_rate"] == "7"
    assert found.change({"trace_rate": None})["trace_rate"] == "50"


async def test_one_model_may_be_traced_alone(tracer):
    found = tracer()

    found.change({"trace_level": ["TIMESTAMPS"], "trace_rate": "1"}, "m")

    assert await traced(found, "m")
    assert not await traced(found, "other")


async def test_the_last_of_the_count_turns_it_off(tracer):
    found = tracer(*ON, ("count", "2"))

    assert await traced(found) and await traced(found)
    assert not found.on
    assert found.settings()["trace_count"] == "0"


async def test_a_change_starts_the_count_again(tracer):
    found = tracer(*ON, ("count", "1"))
    await traced(found)

    found.change({"trace_level": ["TENSORS"]})

    assert await traced(found)
    assert not await traced(found)


async def test_a_count_of_a_client_continues_when_another_setting_changes(tracer):
    found = tracer(*ON)
    found.change({"trace_count": "2"})
    found.change({"trace_count": "3"}, "m")
    await traced(found)
    await traced(found, "other")

    found.change({"log_frequency": "5"})

    assert found.settings()["trace_count"] == "1"
    assert found.settings("m")["trace_count"] == "2"


async def test_a_change_of_the_server_leaves_the_count_of_a_model_alone(tracer):
    found = tracer(*ON)
    found.change({"trace_count": "1"}, "m")
    await traced(found)

    found.change({"trace_count": "9"})

    assert not await traced(found)
    assert await traced(found, "other")


async def test_it_stays_on_until_the_last_trace_has_left(tracer):
    found = tracer(*ON)
    replies = []

    def waiting(request):
        replies.append(Reply(request))
        return replies[-1]

    found.infer(InferenceRequest("m", {}), "m", 1, waiting)
    found.change({"trace_level": ["OFF"]})
    assert found.on

    replies[0].send(None, True)
    await asyncio.sleep(0)
    assert not found.on


async def test_a_request_that_brings_a_trace_is_its_child_and_not_counted(tracer):
    found = tracer(*ON, ("count", "1"))
    first, second = InferenceRequest("m", {}), InferenceRequest("n", {})
    first_reply, second_reply = Reply(first), Reply(second)
    found.infer(first, "m", 1, lambda request: first_reply)
    second.trace = first.trace

    found.infer(second, "n", 1, lambda request: second_reply)

    assert second.trace is not first.trace
    assert second.trace.parent_id == first.trace.id


def test_a_level_without_a_trace_file_is_a_warning(tracer, caplog):
    with caplog.at_level(logging.WARNING, "core"):
        tracer(*ON, file=False)

    assert caplog.text.count("no trace is written") == 1


def test_a_change_without_a_trace_file_is_refused(tracer):
    found = tracer(file=False)

    with pytest.raises(CoreError) as caught:
        found.change({"trace_level": ["TIMESTAMPS"]}, "m")

    assert caught.value.message.endswith(":trace file name is not given")
    assert found.settings("m")["trace_level"] == ["OFF"]


def test_a_rate_of_zero_is_refused_unless_tracing_is_off(tracer):
    found = tracer(*ON)

    with pytest.raises(CoreError):
        found.change({"trace_rate": "0"})

    assert found.change({"trace_rate": "0", "trace_level": ["OFF"]})["trace_rate"] == "0"
