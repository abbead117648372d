"""Configurations in a load request: invalid ones are refused, and the serving version continues."""

import base64
import json

import pytest

CONTENT = base64.b64encode(b"x").decode()
RIGHT = {
    "backend": "test",
    "max_batch_size": 4,
    "input": [{"name": "x", "data_type": "TYPE_FP32", "dims": [2]}],
    "output": [{"name": "y", "data_type": "TYPE_FP32", "dims": [2]}],
}


@pytest.mark.parametrize(
    "wrong",
    [
        {"max_batch_size": -1},
        {"max_batch_size": 2**31},
        {"max_batch_size": "many"},
        {"input": [{"name": "x", "data_type": "TYPE_FP32", "dims": [-5]}]},
        {"input": [{"name": "x", "data_type": "TYPE_FP32", "dims": [2**63]}]},
        {"input": [{"name": "x", "data_type": "TYPE_FP32", "dims": []}], "max_batch_size": 0},
        {"input": [{"name": "x", "data_type": "TYPE_NOTHING", "dims": [2]}]},
        {"dynamic_batching": {"preferred_batch_size": [-1]}},
        {"dynamic_batching": {"max_queue_delay_microseconds": -1}},
        {"sequence_batching": {"max_sequence_idle_microseconds": -1}},
        {"version_policy": {"specific": {"versions": [-(2**63)]}}},
    ],
    ids=lambda wrong: json.dumps(wrong)[:60],
)
def test_a_configuration_that_cannot_be_is_refused_at_its_load(server, wrong):
    """CVE-2025-23335, CVE-2025-23336: numbers that ran below zero, models that were misconfigured."""
    answer = server.ask(
        "POST",
        "/v2/repository/models/new/load",
        {"parameters": {"config": json.dumps(RIGHT | wrong), "file:1/x": CONTENT}},
    )

    assert answer.status in (400, 500)
    assert answer.text
    assert server.ask("GET", "/v2/models/new/ready").status == 400


@pytest.mark.parametrize(
    "config", ["", "{", "[]", "null", '{"a": 1}', "[" * 100_000, '"x"', "{}" * 2]
)
def test_a_configuration_that_is_none_is_refused(server, config):
    answer = server.ask(
        "POST",
        "/v2/repository/models/new/load",
        {"parameters": {"config": config, "file:1/x": CONTENT}},
    )

    assert answer.status in (400, 500)
    assert "unexpected error" not in answer.text
