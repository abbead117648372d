"""Text that must match a structure: the answer of models that reason, and calls beside it."""

import json

import pytest

pytest.importorskip("backend_testing.letters")

CHAT, RESPONSES, MESSAGES = "/v1/chat/completions", "/v1/responses", "/v1/messages"
SCHEMA = {"type": "object", "properties": {"n": {"type": "integer"}}, "required": ["n"]}
FORMAT = {"type": "json_schema", "json_schema": {"name": "s", "schema": SCHEMA}}
USER = [{"role": "user", "content": "x"}]
ADD = {"type": "function", "function": {"name": "add", "parameters": SCHEMA}}


@pytest.fixture
def client(letters, connect):
    return connect(letters[1])


@pytest.mark.parametrize("model", ["thinker", "reasoner"])
def test_structured_text_of_a_model_that_reasons_is_its_content(client, model):
    body = {"model": model, "messages": USER, "response_format": FORMAT}

    status, whole = client.ask(CHAT, body)
    deltas = [each["choices"][0]["delta"] for each in client.chunks(CHAT, body)]

    message = whole["choices"][0]["message"]
    assert status == 200 and json.loads(message["content"]) == {"n": 0}
    assert "reasoning_content" not in message
    assert json.loads("".join(each.get("content") or "" for each in deltas)) == {"n": 0}


def test_structured_text_of_a_model_that_reasons_is_the_message_of_a_response(client):
    form = {"type": "json_schema", "name": "s", "schema": SCHEMA}

    status, found = client.ask(
        RESPONSES, {"model": "reasoner", "input": "x", "text": {"format": form}}
    )

    (message,) = found["output"]
    assert (status, message["type"]) == (200, "message")
    assert json.loads(message["content"][0]["text"]) == {"n": 0}


def test_the_prompt_of_structured_text_ends_behind_the_reasoning(client):
    def prompt_tokens(**fields):
        body = {"model": "reasoner", "messages": USER, **fields}
        return client.ask(CHAT, body)[1]["usage"]["prompt_tokens"]

    plain = prompt_tokens()

    more = len("<think>\n\n</think>\n\n") - len("<think>\n")  # a token is a byte
    assert prompt_tokens(response_format=FORMAT) == plain + more
    assert prompt_tokens(structured_outputs={"choice": ["yes"]}) == plain + more


def test_without_a_structure_the_model_reasons(client):
    message = client.ask(CHAT, {"model": "reasoner", "messages": USER})[1]["choices"][0]["message"]

    assert (message["content"], message["reasoning_content"]) == ("yes", "hm")


def test_calls_that_may_not_be_parallel_are_one(client):
    body = {"model": "callers", "messages": USER}
    response = {
        "model": "callers",
        "input": "x",
        "tools": [{**ADD["function"], "type": "function"}],
    }
    tool = {"name": "add", "input_schema": SCHEMA}
    message = {**body, "max_tokens": 1000, "tools": [tool]}
    one = {"type": "auto", "disable_parallel_tool_use": True}

    def calls(path, body):
        status, found = client.ask(path, body)
        assert status == 200, found
        if path == CHAT:
            return found["choices"][0]["message"]["tool_calls"]
        name, kind = ("output", "function_call") if path == RESPONSES else ("content", "tool_use")
        return [each for each in found[name] if each["type"] == kind]

    assert len(calls(CHAT, {**body, "tools": [ADD]})) == 2
    assert len(calls(RESPONSES, response)) == 2
    assert len(calls(MESSAGES, message)) == 2
    assert len(calls(CHAT, {**body, "tools": [ADD], "parallel_tool_calls": False})) == 1
    assert len(calls(RESPONSES, {**response, "parallel_tool_calls": False})) == 1
    assert len(calls(MESSAGES, {**message, "tool_choice": one})) == 1


def test_a_stream_has_one_call_if_they_may_not_be_parallel(client):
    body = {"model": "callers", "messages": USER, "tools": [ADD], "parallel_tool_calls": False}

    chunks = client.chunks(CHAT, body)

    calls = [call for each in chunks for call in each["choices"][0]["delta"].get("tool_calls", ())]
    assert {each["index"] for each in calls} == {0}
    arguments = "".join(each["function"]["arguments"] for each in calls)
    assert json.loads(arguments) == {"a": 1, "b": [2, "ä"]}
    assert chunks[-1]["choices"][0]["finish_reason"] == "tool_calls"


TWO_FORMS = {"messages": USER, "tools": [ADD], "response_format": FORMAT}


@pytest.mark.parametrize("model", ["letters", "reasoner"])
def test_with_a_schema_for_the_answer_the_model_may_call(client, model):
    # The engine writes the first form that it may: a list of calls.
    status, found = client.ask(CHAT, {"model": model, **TWO_FORMS})

    (call,) = found["choices"][0]["message"]["tool_calls"]
    assert (status, call["function"]["name"]) == (200, "add")
    assert json.loads(call["function"]["arguments"]) == {"n": 0}


def test_with_a_schema_for_the_answer_a_response_may_have_calls(client):
    form = {"type": "json_schema", "name": "s", "schema": SCHEMA}
    body = {"model": "letters", "input": "x", "text": {"format": form}}

    status, found = client.ask(
        RESPONSES, {**body, "tools": [{**ADD["function"], "type": "function"}]}
    )

    assert (status, found["output"][0]["type"]) == (200, "function_call")


def test_with_tools_the_model_may_answer_by_the_schema(letters, connect, models):
    # This model writes {"a": 1} for any structure.
    status, found = connect(letters[1]).ask(CHAT, {"model": "engine", **TWO_FORMS})

    message = found["choices"][0]["message"]
    assert (status, message["content"]) == (200, '{"a": 1}')
    assert "tool_calls" not in message
    (sampling,) = models.seen[0]["sampling_parameters"]
    *calls, answer = json.loads(sampling)["structured_outputs"]["json"]["anyOf"]
    assert answer == SCHEMA and len(calls) == 2


def test_other_structures_are_refused_beside_tools(client):
    body = {"model": "letters", "messages": USER, "tools": [ADD]}
    outputs = {"structured_outputs": {"choice": ["yes"]}}

    status, found = client.ask(CHAT, {**body, **outputs})

    assert (status, found["error"]["param"]) == (400, "structured_outputs")
    assert client.ask(CHAT, {**body, **outputs, "tool_choice": "none"})[0] == 200


ENDLESS = {"type": "object", "properties": {"n": {"$ref": "#"}}, "required": ["n"]}
CALL = {"type": "function", "function": {"name": "add", "parameters": ENDLESS}}
JSON = {"type": "json_schema", "json_schema": {"name": "s", "schema": ENDLESS}}
TEXT = {"type": "json_schema", "name": "s", "schema": ENDLESS}


@pytest.mark.parametrize(
    ("path", "fields", "param"),
    [
        (CHAT, {"messages": USER, "response_format": JSON}, "response_format"),
        (CHAT, {"messages": USER, "response_format": JSON, "stream": True}, "response_format"),
        (
            CHAT,
            {"messages": USER, "structured_outputs": {"json": ENDLESS}},
            "structured_outputs",
        ),
        (CHAT, {"messages": USER, "tools": [CALL], "tool_choice": "required"}, "tool_choice"),
        (
            "/v1/completions",
            {"prompt": "x", "structured_outputs": {"json": ENDLESS}},
            "structured_outputs",
        ),
        (RESPONSES, {"input": "x", "text": {"format": TEXT}}, "text.format"),
    ],
)
def test_a_structure_that_the_engine_refuses_is_named(client, path, fields, param):
    status, found = client.ask(path, {"model": "letters", **fields})

    error = found["error"]
    assert (status, error["param"], error["code"]) == (400, param, None)
    assert "nested more than 50" in error["message"]


@pytest.mark.parametrize(
    ("path", "field", "value"),
    [
        (CHAT, "messages", [{"role": "user", "content": "x" * 1100}]),
        ("/v1/completions", "prompt", "x" * 1100),
        (RESPONSES, "input", "x" * 1100),
    ],
)
@pytest.mark.parametrize("stream", [False, True])
def test_a_prompt_longer_than_the_context_is_named(client, path, field, value, stream):
    status, found = client.ask(path, {"model": "letters", field: value, "stream": stream})

    error = found["error"]
    assert (status, error["param"], error["code"]) == (400, field, "context_length_exceeded")
    assert "1024" in error["message"]
