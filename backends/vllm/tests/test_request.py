"""Fields of a request → fields of vLLM's SamplingParams, by vLLM's names."""

import pytest
from backend_vllm.request import sampling_values, structure_values
from core_generate import Sampling, Structure

PLAIN = {
    "frequency_penalty": 0.0,
    "presence_penalty": 0.0,
    "repetition_penalty": 1.0,
    "ignore_eos": False,
    "min_tokens": 0,
    "max_tokens": 100,
    "seed": None,
    "stop": None,
    "stop_token_ids": None,
    "logit_bias": None,
    "logprobs": None,
}


def values(defaults=(), room=100, **fields):
    return sampling_values(Sampling(**fields), room, dict(defaults))


def test_a_request_without_fields_fills_the_context():
    assert values() == PLAIN


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        ({"max_tokens": 5, "min_tokens": 2}, {"max_tokens": 5, "min_tokens": 2}),
        ({"temperature": 0.0, "top_p": 0.5}, {"temperature": 0.0, "top_p": 0.5}),
        ({"top_k": 0, "min_p": 0.1}, {"top_k": 0, "min_p": 0.1}),
        (
            {"frequency_penalty": 1.0, "presence_penalty": -1.0},
            {"frequency_penalty": 1.0, "presence_penalty": -1.0},
        ),
        (
            {"repetition_penalty": 1.5, "ignore_eos": True},
            {"repetition_penalty": 1.5, "ignore_eos": True},
        ),
        ({"stop": ("a", "b"), "stop_tokens": (3,)}, {"stop": ["a", "b"], "stop_token_ids": [3]}),
        ({"logit_bias": {3: -1.0}, "logprobs": 0}, {"logit_bias": {3: -1.0}, "logprobs": 0}),
    ],
)
def test_fields_have_vllms_names(fields, expected):
    assert values(**fields) == {**PLAIN, **expected}


def test_a_text_is_no_longer_than_the_context():
    found = values(room=7, max_tokens=100, min_tokens=50)

    assert (found["max_tokens"], found["min_tokens"]) == (7, 7)


def test_the_models_own_sampling_counts_where_a_request_gives_none():
    defaults = {"temperature": 0.6, "top_k": 20, "repetition_penalty": 1.1, "max_tokens": 50}

    found = values(defaults, top_k=5)

    assert (found["temperature"], found["top_k"]) == (0.6, 5)
    assert (found["repetition_penalty"], found["max_tokens"]) == (1.1, 50)
    assert values(defaults, max_tokens=60, repetition_penalty=2.0)["max_tokens"] == 60


@pytest.mark.parametrize("seed", [0, 7, 2**63, 2**64 - 1, -1, -5, -(2**63)])
def test_every_seed_is_a_number_that_vllm_keeps(seed):
    found = values(seed=seed)["seed"]

    assert -(2**63) <= found < 2**63
    assert found != -1  # vLLM's word for no seed
    assert found == seed or seed in (-1, 2**63, 2**64 - 1)


@pytest.mark.parametrize(
    ("structure", "expected"),
    [
        (Structure(schema=True), {"json_object": True}),
        (Structure(schema={"type": "object"}), {"json": {"type": "object"}}),
        (Structure(regex="a+"), {"regex": "a+"}),
        (Structure(grammar="root ::= x"), {"grammar": "root ::= x"}),
        (Structure(choices=("a", "b")), {"choice": ["a", "b"]}),
    ],
)
def test_a_structure_is_one_field(structure, expected):
    assert structure_values(structure) == expected
