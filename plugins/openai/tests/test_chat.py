"""/v1/chat/completions, byte by byte: fields, events, errors."""

import json

import numpy as np
import pytest

import core

CHAT = "/v1/chat/completions"


def texts(value):
    return np.array([value.encode()], object)


def user(text):
    return [{"role": "user", "content": text}]


def content(chunks, index=0):
    return "".join(
        choice["delta"].get("content") or ""
        for chunk in chunks
        for choice in chunk["choices"]
        if choice["index"] == index
    )


def test_a_plain_model_answers_with_all_its_responses(client, models):
    status, found = client.ask(CHAT, {"model": "words", "messages": user("a b c")})

    assert status == 200
    assert found["object"] == "chat.completion" and found["model"] == "words"
    assert found["choices"] == [
        {
            "index": 0,
            "message": {"role": "assistant", "content": "a b c ", "refusal": None},
            "logprobs": None,
            "finish_reason": "stop",
        }
    ]
    assert found["usage"] is None
    assert models.seen == [b"a b c"]


def test_events_have_one_id_a_role_first_and_a_finish_last(client):
    chunks = client.chunks(CHAT, {"model": "words", "messages": user("a b")})

    assert {(each["id"], each["object"]) for each in chunks} == {
        (chunks[0]["id"], "chat.completion.chunk")
    }
    assert chunks[0]["choices"][0]["delta"]["role"] == "assistant"
    assert content(chunks) == "a b "
    assert [each["choices"][0]["finish_reason"] for each in chunks] == [None, None, None, "stop"]
    assert all("usage" not in each for each in chunks)


def test_several_messages_without_a_template_are_lines(client, models):
    messages = [{"role": "system", "content": "be kind"}, *user("hello")]

    client.ask(CHAT, {"model": "words", "messages": messages})

    assert models.seen == [b"system: be kind\nuser: hello\nassistant:"]


@pytest.mark.parametrize("model", ["engine", "vllm"])
def test_a_model_with_sampling_parameters_gets_all_fields(client, models, model):
    status, found = client.ask(
        CHAT,
        {
            "model": model,
            "messages": user("hello"),
            "temperature": 0.5,
            "seed": 3,
            "max_completion_tokens": 2,
            "stop": "end",
            "user": "somebody",
        },
    )

    (seen,) = models.seen
    assert status == 200, found
    assert json.loads(seen["sampling_parameters"][0]) == {
        "max_tokens": 2,
        "temperature": 0.5,
        "seed": 3,
        "stop": ["end"],
    }
    assert "stream" not in seen and seen["exclude_input_in_output"] == [True]
    choice = found["choices"][0]
    assert (choice["message"]["content"], choice["finish_reason"]) == ("3 two ", "length")
    assert found["usage"] == {"prompt_tokens": 7, "completion_tokens": 2, "total_tokens": 9}


def test_the_template_of_an_engine_makes_its_prompt(client, models):
    client.ask(CHAT, {"model": "engine", "messages": user("hello")})

    assert models.seen[0]["text_input"] == [b"<s><|user|>hello<|assistant|>"]


def test_n_choices_come_together_each_with_its_seed(client):
    body = {"model": "engine", "messages": user("x"), "n": 3, "seed": 5}

    found = client.ask(CHAT, body)[1]
    chunks = client.chunks(CHAT, {**body, "stream_options": {"include_usage": True}})

    wanted = [f"{seed} two three" for seed in (5, 6, 7)]
    assert [each["message"]["content"] for each in found["choices"]] == wanted
    assert [content(chunks, index) for index in range(3)] == wanted
    usage = {"prompt_tokens": 7, "completion_tokens": 9, "total_tokens": 16}
    assert found["usage"] == usage
    assert chunks[-1]["usage"] == usage and chunks[-1]["choices"] == []
    assert {json.dumps(each["usage"]) for each in chunks[:-1]} == {"null"}


def test_logprobs_of_a_whole_answer_and_of_events_are_equal(client):
    body = {
        "model": "engine",
        "messages": user("x"),
        "logprobs": True,
        "top_logprobs": 1,
        "max_tokens": 2,
    }

    whole = client.ask(CHAT, body)[1]["choices"][0]["logprobs"]["content"]
    chunks = client.chunks(CHAT, body)

    parts = [each["choices"][0]["logprobs"] for each in chunks]
    assert [entry for part in parts if part for entry in part["content"]] == whole
    assert [entry["token"] for entry in whole] == ["one ", "two "]
    assert whole[0]["top_logprobs"][0]["token"] == "uno"
    assert whole[0]["bytes"] == list(b"one ")


def test_a_schema_becomes_a_structure(client, models):
    schema = {"type": "object", "properties": {"a": {"type": "integer"}}}
    wanted = {"type": "json_schema", "json_schema": {"name": "s", "schema": schema}}

    status, found = client.ask(
        CHAT, {"model": "engine", "messages": user("x"), "response_format": wanted}
    )

    assert status == 200, found
    assert json.loads(found["choices"][0]["message"]["content"]) == {"a": 1}
    sampling = json.loads(models.seen[0]["sampling_parameters"][0])
    assert sampling["structured_outputs"]["json"]["properties"] == schema["properties"]


def test_a_named_tool_is_called_with_forced_arguments(client):
    tool = {"type": "function", "function": {"name": "add", "parameters": {"type": "object"}}}
    body = {
        "model": "engine",
        "messages": user("x"),
        "tools": [tool],
        "tool_choice": {"type": "function", "function": {"name": "add"}},
    }

    whole = client.ask(CHAT, body)[1]["choices"][0]
    chunks = client.chunks(CHAT, body)

    (call,) = whole["message"]["tool_calls"]
    assert (call["function"]["name"], json.loads(call["function"]["arguments"])) == (
        "add",
        {"a": 1},
    )
    assert whole["finish_reason"] == "tool_calls" and whole["message"]["content"] is None
    parts = [
        call
        for chunk in chunks
        for choice in chunk["choices"]
        for call in choice["delta"].get("tool_calls", ())
    ]
    assert parts[0]["function"]["name"] == "add" and parts[0]["id"]
    assert json.loads("".join(each["function"]["arguments"] for each in parts)) == {"a": 1}
    assert chunks[-1]["choices"][0]["finish_reason"] == "tool_calls"


def test_characters_that_the_model_cuts_arrive_whole(client):
    text = "äöü 漢字 🙂"

    chunks = client.chunks(CHAT, {"model": "cut", "messages": user(text)})

    assert content(chunks) == text
    assert "�" not in "".join(content([each]) for each in chunks)


@pytest.mark.parametrize(
    ("change", "param"),
    [
        ({"model": "nothing"}, "model"),
        ({"model": None}, "model"),
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "user", "content": 5}]}, "messages[0].content"),
        ({"temperature": "hot"}, "temperature"),
        ({"temperature": 3}, "temperature"),
        ({"n": 0}, "n"),
        ({"stream_options": {"include_usage": True}}, "stream_options"),
        ({"top_logprobs": 2}, "top_logprobs"),
        ({"logit_bias": {"x": 1}}, "logit_bias"),
        ({"top_p": 0}, "top_p"),
        ({"stop": ""}, "stop"),
        ({"stop": ["a", ""]}, "stop"),
        ({"stop": "a" * 5000}, "stop"),
        ({"min_tokens": 3, "max_tokens": 2}, "min_tokens"),
        ({"structured_outputs": {"json": {"type": {}}}}, "structured_outputs.json.type"),
        ({"structured_outputs": {"choice": ["a", 1]}}, "structured_outputs.choice[1]"),
        ({"structured_outputs": {"regex": "a", "grammar": "b"}}, "structured_outputs"),
        ({"made_up": 1}, "made_up"),
        ({"top_k": 3}, "top_k"),  # the engine does not support it
        ({"response_format": {"type": "json_schema"}}, "response_format.json_schema"),
        ({"model": "words", "temperature": 0.5}, "temperature"),
        ({"model": "words", "max_completion_tokens": 5}, "max_completion_tokens"),
        ({"model": "words", "logprobs": True}, "logprobs"),
    ],
)
def test_a_wrong_field_is_named(client, change, param):
    body = {"model": "engine", "messages": user("x"), **change}

    status, found = client.ask(CHAT, body)

    assert status == (404 if change == {"model": "nothing"} else 400)
    error = found["error"]
    assert error["param"] == param, error
    assert set(error) == {"message", "type", "param", "code"}
    assert param.partition("[")[0].rpartition(".")[2] in error["message"]


def test_fields_that_ask_for_nothing_are_accepted(client):
    body = {"model": "words", "messages": user("x"), "temperature": 1, "top_p": 1, "n": 1}
    body |= {"frequency_penalty": 0, "stop": None, "logprobs": False, "tools": None}

    assert client.ask(CHAT, body)[0] == 200


def test_an_error_before_the_first_event_has_its_status_and_a_later_one_is_an_event(client, models):
    status, found = client.ask(CHAT, {"model": "broken", "messages": user("now"), "stream": True})
    assert status == 503
    assert found["error"]["message"] == "the model has no more text"

    models.gate.clear()
    body = {"model": "broken", "messages": user("late"), "stream": True}
    answer = client.begin(CHAT, body).getresponse()
    begin = answer.read1()
    models.gate.set()
    *events, last, end = (begin + answer.read()).decode().split("\n\n")
    assert answer.status == 200 and end == ""
    assert json.loads(last[6:])["error"]["message"] == "the model has no more text"
    assert content([json.loads(each[6:]) for each in events]) == "begun"


@pytest.mark.parametrize("body", [b"", b"{", b"[]", b'"x"', b"nul", b"[" * 5000, b"\xff"])
def test_what_is_no_json_object_is_refused(client, body):
    connection = client.begin(CHAT, None)
    connection.getresponse().read()
    connection.request("POST", CHAT, body)
    answer = connection.getresponse()

    assert answer.status == 400
    assert json.loads(answer.read())["error"]["type"] == "invalid_request_error"


def test_a_request_of_too_many_values_is_refused_before_they_are_made(client):
    connection = client.begin(CHAT, None)
    connection.getresponse().read()
    connection.request("POST", CHAT, b"[" + b"0," * 1_000_001 + b"0]")

    answer = connection.getresponse()
    assert answer.status == 400
    assert "JSON values" in json.loads(answer.read())["error"]["message"]


TOOL = {"type": "function", "function": {"name": "add", "parameters": {"type": "object"}}}


def test_tools_reach_a_model_with_an_input_for_them(open_server, connect):
    server, port = open_server()
    seen = []

    def chat(messages, tools=None):
        seen.append((json.loads(messages[0]), None if tools is None else json.loads(tools[0])))
        return {"text_output": texts("yes")}

    inputs = {"messages": ("BYTES", [1]), "tools": ("BYTES", [1])}
    server.bind("chat", chat, inputs=inputs, outputs={"text_output": ("BYTES", [1])})
    body = {"model": "chat", "messages": user("x")}

    assert connect(port).ask(CHAT, {**body, "tools": [TOOL]})[0] == 200
    assert connect(port).ask(CHAT, body)[0] == 200

    assert [tools for _, tools in seen] == [[TOOL], None]


def test_tools_are_refused_by_a_model_that_takes_messages_alone(open_server, connect):
    server, port = open_server()
    server.bind(
        "chat",
        lambda messages: {"text_output": texts("yes")},
        inputs={"messages": ("BYTES", [1])},
        outputs={"text_output": ("BYTES", [1])},
    )
    body = {"model": "chat", "messages": user("x"), "tools": [TOOL]}

    status, found = connect(port).ask(CHAT, body)

    assert (status, found["error"]["param"]) == (400, "tools")
    assert "needs an optional BYTES input 'tools'" in found["error"]["message"]


@pytest.mark.parametrize("path", [CHAT, "/v1/completions", "/v1/messages", "/v1/responses"])
def test_a_lone_surrogate_in_an_error_breaks_no_stream(open_server, connect, models, path):
    server, port = open_server()

    def broken(text_input):
        yield {"text_output": texts("begun")}
        models.gate.wait(10)
        raise core.CoreError(core.errors.Kind.UNAVAILABLE, "no \udc80 more")

    tensors = {"inputs": {"text_input": ("BYTES", [1])}, "outputs": {"text_output": ("BYTES", [1])}}
    server.bind("torn", broken, **tensors)
    body = {"model": "torn", "messages": user("x"), "stream": True}
    if path == "/v1/completions":
        body = {"model": "torn", "prompt": "x", "stream": True}
    elif path == "/v1/responses":
        body = {"model": "torn", "input": "x", "stream": True}

    if path == "/v1/messages":
        body["max_tokens"] = 9

    models.gate.clear()
    answer = connect(port).begin(path, body).getresponse()
    models.gate.set()
    answer = answer.read().decode()

    assert "begun" in answer
    assert "no \\\\udc80 more" in answer
