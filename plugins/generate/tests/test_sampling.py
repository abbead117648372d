"""sampling_parameters: JSON with the names of vLLM."""

import json

import pytest
from core_generate import Sampling, Structure
from core_generate.sampling import SamplingRequest, read_sampling, sampling_among
from hypothesis import given
from hypothesis import strategies as st

from core.errors import CoreError, Kind


def read(**fields):
    return read_sampling(json.dumps(fields).encode())


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({}, Sampling()),
        ({"max_tokens": 5, "min_tokens": "2"}, Sampling(max_tokens=5, min_tokens=2)),
        ({"temperature": "0.7", "top_p": 1}, Sampling(temperature=0.7, top_p=1.0)),
        ({"top_k": -1}, Sampling(top_k=0)),
        ({"top_k": 40.0, "min_p": 0}, Sampling(top_k=40, min_p=0.0)),
        ({"stop": "x"}, Sampling(stop=("x",))),
        (
            {"stop": ["x", "yz"], "stop_token_ids": [1]},
            Sampling(stop=("x", "yz"), stop_tokens=(1,)),
        ),
        ({"ignore_eos": "True", "seed": -3}, Sampling(ignore_eos=True, seed=-3)),
        ({"logit_bias": {"5": -100, "6": "1.5"}}, Sampling(logit_bias={5: -100.0, 6: 1.5})),
        ({"logprobs": 0}, Sampling(logprobs=0)),
        ({"presence_penalty": -2, "frequency_penalty": None}, Sampling(presence_penalty=-2.0)),
        ({"repetition_penalty": 1.2}, Sampling(repetition_penalty=1.2)),
        ({"n": 1, "skip_special_tokens": True}, Sampling()),
        (
            {"structured_outputs": {"choice": ["a", "b"], "json": None}},
            Sampling(structure=Structure(choices=("a", "b"))),
        ),
        (
            {"guided_decoding": {"json": '{"type": "object"}', "json_object": False}},
            Sampling(structure=Structure(schema={"type": "object"})),
        ),
        (
            {"guided_decoding": '{"json_object": true}'},
            Sampling(structure=Structure(schema=True)),
        ),
        ({"structured_outputs": {"regex": "a+"}}, Sampling(structure=Structure(regex="a+"))),
        ({"structured_outputs": {"grammar": "x"}}, Sampling(structure=Structure(grammar="x"))),
    ],
)
def test_fields_are_read(fields, expected):
    assert read(**fields).sampling == expected


def test_parameters_of_a_request_count_if_they_have_the_name_of_a_field():
    found = sampling_among({"temperature": 0.5, "max_tokens": "4", "priority": 1, "task": "x"})

    assert found.sampling == Sampling(temperature=0.5, max_tokens=4)
    assert found.fields == {"temperature": "temperature", "max_tokens": "max_tokens"}
    assert sampling_among({"header": "x"}) == SamplingRequest()
    with pytest.raises(CoreError, match="'n' is 2, it must be 1"):
        sampling_among({"n": 2})


def test_adapter_and_suffix_belong_to_the_prompt():
    found = read(lora_name="de", suffix="}")

    assert (found.adapter, found.suffix) == ("de", "}")
    assert found.fields == {"adapter": "lora_name", "suffix": "suffix"}


def test_fields_that_change_something_are_listed_with_their_names():
    found = read(top_k=0, top_p=1, min_p=0.5, stop_token_ids=[3], structured_outputs={"regex": "a"})

    assert found.fields == {
        "min_p": "min_p",
        "stop_tokens": "stop_token_ids",
        "regex": "structured_outputs.regex",
    }


@pytest.mark.parametrize(
    ("text", "message"),
    [
        (b"{", "sampling_parameters is no JSON"),
        (b"[" * 100_000, "sampling_parameters is no JSON"),
        (b"\xff", "sampling_parameters is no JSON"),
        (b'{"seed": NaN}', "sampling_parameters is no JSON"),
        (b'{"\\ud800": 1}', "sampling_parameters is no JSON"),
        (b"[]", "sampling_parameters is a list, it must be a JSON object"),
        (b'{"max_token": 1}', "unknown field 'max_token'; did you mean 'max_tokens'?"),
        (b'{"max_tokens": 0}', "'max_tokens' is 0, it must be a whole number of at least 1"),
        (b'{"max_tokens": "many"}', "'max_tokens' is 'many'"),
        (b'{"max_tokens": true}', "'max_tokens' is true"),
        (b'{"max_tokens": 1e999}', "sampling_parameters is no JSON"),
        (
            b'{"max_tokens": 2, "min_tokens": 3}',
            "'min_tokens' is 3, it must be at most max_tokens 2",
        ),
        (b'{"temperature": -1}', "'temperature' is -1, it must be a number of at least 0"),
        (b'{"temperature": "inf"}', "'temperature' is 'inf'"),
        (b'{"top_p": 0}', "'top_p' is 0, it must be a number above 0 to 1"),
        (b'{"top_p": [1]}', "'top_p' is [1]"),
        (b'{"presence_penalty": 2.5}', "it must be a number from -2 to 2"),
        (b'{"stop": ""}', "'stop' is \"\", it must be a text that is not empty"),
        (b'{"stop": [1]}', "'stop' is [1]"),
        (b'{"stop_token_ids": [-1]}', "'stop_token_ids' is [-1]"),
        (b'{"logit_bias": {"a": 1}}', "'logit_bias.a' is 'a', it must be a whole number"),
        (b'{"logit_bias": {"1": 101}}', "'logit_bias.1' is 101"),
        (b'{"n": 2}', "'n' is 2, it must be 1: engines have no other value of it"),
        (b'{"structured_outputs": {}}', "is an object with no member, it must be one of json"),
        (
            b'{"structured_outputs": {"regex": "a", "choice": ["b"]}}',
            "is an object with regex, choice, it must be one of json",
        ),
        (b'{"structured_outputs": {"regx": "a"}}', "unknown member 'regx'; did you mean 'regex'?"),
        (b'{"structured_outputs": {"json": 3}}', "it must be a JSON schema"),
        (b'{"structured_outputs": {"choice": []}}', "it must be a list of texts with at least one"),
        (
            b'{"structured_outputs": {"regex": "a"}, "guided_decoding": {"regex": "a"}}',
            "either structured_outputs or guided_decoding",
        ),
    ],
)
def test_a_wrong_value_is_refused_with_its_name(text, message):
    with pytest.raises(CoreError) as caught:
        read_sampling(text)

    assert caught.value.kind is Kind.INVALID
    assert message in caught.value.message


def test_the_text_of_an_error_is_short():
    with pytest.raises(CoreError) as caught:
        read(top_p="9" * 100_000)

    assert len(caught.value.message) < 300


def test_a_long_list_is_shown_by_its_begin():
    with pytest.raises(CoreError) as caught:
        read(stop_token_ids=[*range(1000), -1])

    shown = json.dumps(list(range(1000)))[:77]
    assert f"'stop_token_ids' is {shown}..., it must be" in caught.value.message


def test_many_stop_tokens_are_refused():
    with pytest.raises(CoreError, match="is 1025 tokens, it must be at most 1024 tokens"):
        read(stop_token_ids=[1] * 1025)


def test_a_large_document_is_refused_before_it_is_parsed():
    with pytest.raises(CoreError, match="has 4194305 bytes, at most 4194304 are accepted"):
        read_sampling(b"[" + b" " * 2**22)


def test_fields_within_their_own_bounds_are_accepted_together():
    bias = {str(100_000 + token): -12.345678 for token in range(65_536)}
    suffix, grammar = "a" * 131_072, "b" * 900_000

    found = read(logit_bias=bias, suffix=suffix, structured_outputs={"grammar": grammar})

    assert (len(found.sampling.logit_bias), found.suffix) == (65_536, suffix)
    assert found.sampling.structure.grammar == grammar


def test_many_stop_strings_are_refused():
    with pytest.raises(CoreError, match="at most 256 texts of 4096 characters"):
        read(stop=["x" * 100] * 100)


NAMES = st.sampled_from(
    [
        *("max_tokens", "temperature", "top_k", "stop", "stop_token_ids", "logit_bias", "logprobs"),
        *("ignore_eos", "seed", "lora_name", "n", "structured_outputs", "guided_decoding"),
        *("json", "json_object", "regex", "choice", "grammar", "1", "x"),
    ]
)
DOCUMENTS = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=9),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
)


@given(st.dictionaries(NAMES, DOCUMENTS, max_size=3))
def test_any_document_is_read_or_refused(document):
    try:
        found = read_sampling(json.dumps(document).encode())
    except CoreError as error:
        assert error.kind is Kind.INVALID
        assert len(error.message) < 1000
    else:
        assert type(found) is SamplingRequest


@given(st.binary())
def test_any_bytes_are_read_or_refused(data):
    try:
        read_sampling(data)
    except CoreError as error:
        assert error.kind is Kind.INVALID


@pytest.mark.parametrize(
    "text",
    [
        '{"stop": %s}' % ("[" * 1000 + "]" * 1000),
        '{"structured_outputs": {"json": %s}}' % ('{"a":' * 300 + "1" + "}" * 300),
        json.dumps({"structured_outputs": {"json": '{"a":' * 300 + "1" + "}" * 300}}),
        json.dumps({"structured_outputs": '{"json":' * 300 + "1" + "}" * 300}),
    ],
)
def test_json_of_many_levels_is_refused(text):
    with pytest.raises(CoreError, match="levels of lists and objects; at most 128") as refused:
        read_sampling(text.encode())

    assert refused.value.kind is Kind.INVALID
