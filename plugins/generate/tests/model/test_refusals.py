"""Requests that an engine cannot do are refused before it is called."""

import numpy as np
import pytest

from core.errors import CoreError, Kind

from .conftest import Plain, asked, backend_of, text, text_of

pytest_plugins = ["core_testing.plugin"]


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        (asked(top_k=3), "the field 'top_k' of sampling_parameters is not supported"),
        (asked(stop_token_ids=[1]), "the field 'stop_token_ids' of sampling_parameters"),
        (
            asked(structured_outputs={"json_object": True}),
            "the field 'structured_outputs.json_object' of sampling_parameters",
        ),
        (asked(lora_name="x"), "the field 'lora_name'"),
        (asked("abc", "return_logprobs"), "the input 'return_logprobs' is not supported"),
        ({**asked(), "image": text("aaaa")}, "the input 'image' is not supported"),
        (
            {"prompt_token_ids": np.array([1], np.int32)},
            "the input 'prompt_token_ids' is not supported",
        ),
        ({"stream": np.array([True])}, "no text_input and no prompt_token_ids"),
        (
            {**asked(), "prompt_token_ids": np.array([1], np.int32)},
            "a text_input and also prompt_token_ids",
        ),
        (
            {**asked("abc", "stream"), "exclude_input_in_output": np.array([False])},
            "When streaming",
        ),
        (asked(temprature=1), "unknown field 'temprature'; did you mean 'temperature'"),
    ],
)
def test_what_cannot_be_done_is_refused_before_the_engine_is_called(serve, inputs, message):
    served = serve(backend=backend_of(Plain))

    with pytest.raises(CoreError, match=message) as caught:
        served.stream(inputs, "m")

    assert caught.value.kind is Kind.INVALID
    assert text_of(served.stream(asked("a ", max_tokens=1, top_k=0, stop="x"), "m")) == "a text"


def test_a_suffix_follows_no_prompt_of_tokens(serve):
    class Infills(Plain):
        supports = Plain.supports | {"tokens", "suffix"}

    served = serve(backend=backend_of(Infills))
    inputs = {
        "prompt_token_ids": np.array([1], np.int32),
        "sampling_parameters": text('{"suffix": "x"}'),
    }

    with pytest.raises(CoreError, match="the field 'suffix' follows a prompt of text"):
        served.stream(inputs, "m")
