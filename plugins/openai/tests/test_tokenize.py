"""/tokenize and /detokenize over the engine letters, whose tokens are bytes; 256 begins a text."""

import threading

import pytest
from frontend_openai import tokens

TOKENIZE, DETOKENIZE = "/tokenize", "/detokenize"


@pytest.fixture
def asked(letters, connect):
    return connect(letters[1]).ask


def test_tokens_of_a_prompt(asked):
    status, found = asked(TOKENIZE, {"model": "letters", "prompt": "ab"})
    plain = asked(TOKENIZE, {"model": "vectors", "prompt": "ab", "add_special_tokens": False})[1]

    assert (status, found) == (
        200,
        {"count": 3, "max_model_len": 1024, "tokens": [256, 97, 98], "token_strs": None},
    )
    assert plain["tokens"] == [97, 98]


def test_an_adapter_has_the_tokens_of_its_model(asked):
    assert asked(TOKENIZE, {"model": "letters:loud", "prompt": "ab"})[1]["tokens"] == [256, 97, 98]


def test_the_text_of_each_token(asked):
    body = {"model": "letters", "prompt": "abä", "return_token_strs": True}

    _, found = asked(TOKENIZE, body)

    assert found["token_strs"] == ["", "a", "b", "�", "�"]


def test_tokens_of_a_conversation_are_those_of_a_chat(asked):
    body = {"model": "letters", "messages": [{"role": "user", "content": "hi"}]}

    count = asked(TOKENIZE, body)[1]["count"]
    shorter = asked(TOKENIZE, {**body, "add_generation_prompt": False})[1]["count"]

    chat = asked("/v1/chat/completions", {**body, "max_completion_tokens": 1})[1]
    assert count == chat["usage"]["prompt_tokens"] > shorter


def test_tokens_become_their_text(asked):
    tokens = asked(TOKENIZE, {"model": "letters", "prompt": "hällo"})[1]["tokens"]

    assert asked(DETOKENIZE, {"model": "letters", "tokens": tokens}) == (200, {"prompt": "hällo"})


@pytest.mark.parametrize(
    ("path", "change", "param"),
    [
        (TOKENIZE, {}, "prompt"),
        (TOKENIZE, {"prompt": "x", "messages": [{"role": "user", "content": "x"}]}, "prompt"),
        (TOKENIZE, {"prompt": 1}, "prompt"),
        (TOKENIZE, {"prompt": "x", "tools": [{}]}, "tools"),
        (TOKENIZE, {"prompt": "x" * 5000, "return_token_strs": True}, "return_token_strs"),
        (DETOKENIZE, {"tokens": []}, "tokens"),
        (DETOKENIZE, {"tokens": [-1]}, "tokens"),
        (DETOKENIZE, {"tokens": [1], "n": 1}, "n"),
    ],
)
def test_a_wrong_field_is_named(asked, path, change, param):
    status, found = asked(path, {"model": "letters", **change})

    assert (status, found["error"]["param"]) == (400, param)


def test_models_without_tokens_and_unknown_models_are_refused(asked):
    status, found = asked(TOKENIZE, {"model": "words", "prompt": "x"})
    assert (status, found["error"]["type"]) == (400, "invalid_request_error")
    assert asked(DETOKENIZE, {"model": "nothing", "tokens": [1]})[0] == 404


def test_their_refusals_have_the_form_of_these_routes(asked):
    status, found = asked(TOKENIZE, method="GET")

    assert (status, found["error"]["type"]) == (405, "invalid_request_error")
    assert {TOKENIZE, DETOKENIZE} <= asked("/openapi.json")[1]["paths"].keys()


@pytest.mark.parametrize("size", [1, 65_535, 65_536, 200_000])
def test_all_tokens_of_a_long_text_are_written(asked, size):
    status, found = asked(TOKENIZE, {"model": "forever", "prompt": "ab" * size})

    assert (status, found["count"], found["token_strs"]) == (200, 2 * size + 1, None)
    assert found["tokens"] == [256, *[97, 98] * size]


def test_tokens_are_counted_while_long_answers_take_all_places(letters, connect):
    client = connect(letters[1])
    connection = client.begin(
        "/v1/completions",
        {"model": "single", "prompt": "x", "max_tokens": 99_000_000, "stream": True},
    )
    answer = connection.getresponse()
    answer.readline()
    message = {"messages": [{"role": "user", "content": "hi"}], "model": "single"}

    try:
        status, found = client.ask(TOKENIZE, {"model": "single", "prompt": "ab"})
        assert (status, found["tokens"]) == (200, [256, 97, 98])
        status, found = client.ask(DETOKENIZE, {"model": "single", "tokens": [97, 98]})
        assert (status, found) == (200, {"prompt": "ab"})
        status, found = client.ask("/v1/messages/count_tokens", message)
        assert status == 200 and found["input_tokens"] > 2
    finally:
        connection.close()


def test_an_engine_in_another_process_is_asked_by_requests(asked, monkeypatch):
    monkeypatch.setattr(tokens, "tokenizer_of", lambda name, version: None)

    assert asked(TOKENIZE, {"model": "letters", "prompt": "ab"})[1]["tokens"] == [256, 97, 98]
    assert asked(DETOKENIZE, {"model": "letters", "tokens": [97]}) == (200, {"prompt": "a"})


@pytest.mark.parametrize(
    ("path", "body"), [(TOKENIZE, {"prompt": "ab"}), (DETOKENIZE, {"tokens": [97, 98]})]
)
def test_a_deadline_ends_the_wait_for_tokens(asked, monkeypatch, path, body):
    from backend_testing.letters import Letters

    body, go = {"model": "letters", **body}, threading.Event()
    assert asked(path, body, {"grpc-timeout": "20S"})[0] == 200
    assert asked(path, body, {"grpc-timeout": "soon"})[0] == 400
    for name in ("tokenize", "detokenize"):
        monkeypatch.setattr(Letters, name, lambda *_: go.wait(20))

    try:
        status, found = asked(path, body, {"grpc-timeout": "200m"})
    finally:
        go.set()

    assert (status, found["error"]["message"]) == (504, "Deadline Exceeded")
