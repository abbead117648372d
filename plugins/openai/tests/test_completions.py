"""/v1/completions, byte by byte."""

import json

import pytest

PATH = "/v1/completions"


def text(chunks, index=0):
    choices = [choice for chunk in chunks for choice in chunk["choices"]]
    return "".join(choice["text"] for choice in choices if choice["index"] == index)


def test_a_prompt_is_continued(client, models):
    status, found = client.ask(PATH, {"model": "words", "prompt": "a b"})

    assert status == 200
    assert found["object"] == "text_completion"
    assert found["choices"] == [
        {"index": 0, "text": "a b ", "logprobs": None, "finish_reason": "stop"}
    ]
    assert models.seen == [b"a b"]


def test_events(client):
    chunks = client.chunks(PATH, {"model": "words", "prompt": "a b"})

    assert text(chunks) == "a b "
    assert [each["choices"][0]["finish_reason"] for each in chunks] == [None, None, "stop"]


def test_lists_of_prompts_have_choices_in_their_order(client):
    body = {"model": "engine", "prompt": ["x", "y"], "n": 2, "seed": 5}

    found = client.ask(PATH, body)[1]
    chunks = client.chunks(PATH, {**body, "stream_options": {"include_usage": True}})

    wanted = ["5 two three", "6 two three", "5 two three", "6 two three"]
    assert [each["text"] for each in found["choices"]] == wanted
    assert [each["index"] for each in found["choices"]] == [0, 1, 2, 3]
    assert [text(chunks, index) for index in range(4)] == wanted
    assert found["usage"] == chunks[-1]["usage"]
    assert found["usage"] == {"prompt_tokens": 14, "completion_tokens": 12, "total_tokens": 26}


@pytest.mark.parametrize("prompt", [[1, 2, 3], [[1, 2, 3], [1, 2, 3]]])
def test_prompts_of_tokens(client, models, prompt):
    status, found = client.ask(PATH, {"model": "engine", "prompt": prompt})

    assert status == 200, found
    assert all(each["prompt_token_ids"] == [1, 2, 3] for each in models.seen)
    assert all("text_input" not in each for each in models.seen)
    assert client.ask(PATH, {"model": "words", "prompt": prompt})[1]["error"]["param"] == "prompt"


def test_echo_comes_before_the_text(client):
    body = {"model": "engine", "prompt": "Say: ", "echo": True}

    assert client.ask(PATH, body)[1]["choices"][0]["text"] == "Say: one two three"
    assert text(client.chunks(PATH, body)) == "Say: one two three"


def test_the_echo_of_a_prompt_of_tokens_is_what_the_engine_says(letters, connect):
    client = connect(letters[1])
    tokens = list("hällo ".encode())
    body = {"model": "letters", "prompt": [[256, *tokens], tokens], "max_tokens": 3, "echo": True}

    status, found = client.ask(PATH, body)
    chunks = client.chunks(PATH, body)

    assert status == 200, found
    for index, choice in enumerate(found["choices"]):
        assert choice["text"] == text(chunks, index)
        assert choice["text"].startswith("hällo ") and len(choice["text"]) == len("hällo ") + 3
    assert found["usage"]["completion_tokens"] == 6


def test_tokens_outside_the_vocabulary_are_refused_also_with_echo(letters, connect):
    body = {"model": "letters", "prompt": [97, 1_000_000], "echo": True}

    status, found = connect(letters[1]).ask(PATH, body)

    assert status == 400 and "1000000" in found["error"]["message"]


def test_sixteen_tokens_are_the_default_of_models_that_count(client, models):
    client.ask(PATH, {"model": "engine", "prompt": "x"})
    client.ask(PATH, {"model": "words", "prompt": "x"})

    assert json.loads(models.seen[0]["sampling_parameters"][0]) == {"max_tokens": 16}


def test_the_default_is_an_option(open_server, models, connect):

    client = connect(open_server(openai_default_max_tokens=5)[1])
    client.ask(PATH, {"model": "engine", "prompt": "x"})
    messages = [{"role": "user", "content": "x"}]
    client.ask("/v1/chat/completions", {"model": "engine", "messages": messages})

    assert [json.loads(each["sampling_parameters"][0]) for each in models.seen] == [
        {"max_tokens": 5},
        {"max_tokens": 5},
    ]


def test_logprobs_of_a_whole_text_and_of_events_are_equal(client):
    body = {"model": "engine", "prompt": "x", "logprobs": 1}

    whole = client.ask(PATH, body)[1]["choices"][0]["logprobs"]
    chunks = client.chunks(PATH, body)

    parts = [part for each in chunks if (part := each["choices"][0]["logprobs"])]
    for name in whole:
        assert [value for part in parts for value in part[name]] == whole[name]
    assert whole["tokens"] == ["one ", "two ", "three"]
    assert whole["text_offset"] == [0, 4, 8]
    assert whole["top_logprobs"][0] == {"uno": -2.0, "one ": -0.5}


def test_the_best_texts_are_those_of_the_highest_probability(client):
    body = {"model": "engine", "prompt": "x", "seed": 1, "n": 1, "best_of": 3}

    found = client.ask(PATH, body)[1]

    # The model reports -1 / (1 + seed).
    assert [each["text"] for each in found["choices"]] == ["3 two three"]
    assert found["usage"]["completion_tokens"] == 9


def test_fields_without_effect_are_accepted(client):
    fields = {"user": "u", "metadata": {"a": "b"}, "store": True, "service_tier": "auto"}
    fields |= {"safety_identifier": "s", "prompt_cache_key": "p"}

    status, found = client.ask(PATH, {"model": "engine", "prompt": "x", **fields})

    assert status == 200, found


@pytest.mark.parametrize(
    ("change", "param"),
    [
        ({"prompt": None}, "prompt"),
        ({"prompt": []}, "prompt"),
        ({"prompt": [[]]}, "prompt[0]"),
        ({"prompt": ["a", 1]}, "prompt[1]"),
        ({"prompt": ["a"] * 100, "n": 2}, "n"),
        ({"suffix": "end"}, "suffix"),
        ({"best_of": 2, "stream": True}, "best_of"),
        ({"best_of": 1, "n": 2}, "best_of"),
        ({"echo": True, "logprobs": 1}, "echo"),
        ({"model": "vllm", "echo": True, "prompt": [1]}, "echo"),
        ({"max_tokens": -1}, "max_tokens"),
        ({"messages": []}, "messages"),
    ],
)
def test_a_wrong_field_is_named(client, change, param):
    status, found = client.ask(PATH, {"model": "engine", "prompt": "x", **change})

    assert (status, found["error"]["param"]) == (400, param)
