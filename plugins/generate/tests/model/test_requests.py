"""Requests to an engine's model: prompts, sampling parameters, and the outputs of each response."""

import json

import numpy as np
import pytest
from core_testing.served import request_of

from .conftest import asked, parameters, text, text_of

pytest_plugins = ["core_testing.plugin"]


def test_a_stream_has_a_response_for_each_event_and_only_the_asked_outputs(serve):
    found = serve().stream(asked("abc", "stream", "return_token_ids", max_tokens=3), "m")

    assert [text_of([each]) for each in found] == ["d", "e", "f"]
    assert [each["token_ids"].tolist() for each in found] == [[100], [101], [102]]
    assert all(list(each) == ["text_output", "token_ids"] for each in found)


def test_parameters_are_sampling_parameters_unless_the_input_is_given(serve):
    requests = [
        request_of({"text_input": text("abc")}, name="m"),
        request_of(asked("abc", max_tokens=3), name="m"),
    ]
    for each in requests:
        each.parameters.update({"max_tokens": 2, "unknown": "x"})

    few, more = serve().send(requests)

    assert text_of([few]) == "abcde"
    assert text_of([more]) == "abcdef"


@pytest.mark.parametrize("stream", [True, False])
def test_the_last_response_names_the_stop_string(serve, stream):
    flags = ("stream",) * stream + ("return_stop_reason", "return_finish_reason")

    served = serve()
    *others, last = served.stream(asked("abc", *flags, max_tokens=9, stop=["x", "fg"]), "m")
    (*_, other) = served.stream(asked("abc", *flags, max_tokens=2, stop=["x"]), "m")

    assert all(list(each) == ["text_output", "finish_reason"] for each in others)
    assert last["finish_reason"].tolist() == [b"stop"]
    assert last["stop_reason"].tolist() == [b"fg"]
    assert other["stop_reason"].tolist() == [b""]


def test_one_response_has_all_outputs(serve):
    flags = [
        *("return_finish_reason", "return_cumulative_logprob", "return_logprobs"),
        *("return_num_input_tokens", "return_num_output_tokens", "return_token_ids"),
    ]

    (found,) = serve().stream(asked("abc", *flags, max_tokens=2, logprobs=2), "m")

    assert text_of([found]) == "abcde"
    assert found["finish_reason"].tolist() == [b"length"]
    assert found["num_input_tokens"].tolist() == [4]
    assert found["num_output_tokens"].tolist() == [2]
    assert found["token_ids"].tolist() == [100, 101]
    logprobs = json.loads(found["logprobs"][0])
    assert [(each["token"], each["text"]) for each in logprobs] == [(100, "d"), (101, "e")]
    assert [each["text"] for each in logprobs[0]["top"]] == ["d", "e"]
    assert logprobs[0]["logprob"] == pytest.approx(np.log(0.5), abs=1e-3)
    assert found["cumulative_logprob"][0] == pytest.approx(2 * np.log(0.5), abs=1e-3)


def test_text_that_is_held_back_comes_with_its_tokens(serve):
    served = serve(parameters(text="aé<end>"))

    found = served.stream(asked("x", "stream", "return_num_output_tokens", stop="<end>"), "m")

    assert [text_of([each]) for each in found] == ["a", "é", ""]
    assert [int(each["num_output_tokens"][0]) for each in found] == [1, 2, 5]


def test_a_prompt_may_be_tokens(serve):
    inputs = {"prompt_token_ids": np.array([97, 98], np.int32), **asked(max_tokens=2)}
    del inputs["text_input"]

    assert text_of(serve().stream(inputs, "m")) == "abcd"
