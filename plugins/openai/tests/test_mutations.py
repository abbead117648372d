"""Requests of every route with changes at random: none fails with a status of the server, which lives on."""

import base64
import copy
import http.client
import json
import os
import random

import pytest

pytest.importorskip("backend_testing.letters")

SEED = int(os.environ.get("CORE_SEED", "1"))
ROUNDS = int(os.environ.get("CORE_ROUNDS", "200"))  # of each body
PIXEL = base64.b64encode(
    base64.b64decode(
        "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg=="
    )
).decode()
SCHEMA = {
    "type": "object",
    "properties": {"n": {"type": "integer"}, "t": {"$ref": "#/$defs/t"}},
    "required": ["n"],
    "$defs": {"t": {"anyOf": [{"type": "string", "pattern": "a+"}, {"enum": [1, None]}]}},
}
FUNCTION = {"name": "add", "description": "adds", "parameters": SCHEMA, "strict": True}
TOOL = {"type": "function", "function": FUNCTION}
CALL = {"id": "c1", "type": "function", "function": {"name": "add", "arguments": '{"n": 1}'}}
PICTURE = {"type": "image_url", "image_url": {"url": f"data:image/png;base64,{PIXEL}"}}
SAMPLING = {
    "temperature": 0.5,
    "top_p": 0.9,
    "frequency_penalty": 0.5,
    "presence_penalty": -1,
    "seed": 3,
    "stop": ["STOP", "x"],
    "logit_bias": {"97": 5},
    "top_k": 5,
    "min_p": 0.1,
    "repetition_penalty": 1.1,
    "min_tokens": 1,
    "stop_token_ids": [3],
    "ignore_eos": False,
    "stream": False,
    "stream_options": None,
}
CONVERSATION = [
    {"role": "system", "content": "Be kind."},
    {"role": "user", "content": [{"type": "text", "text": "hi"}]},
    {"role": "assistant", "content": None, "tool_calls": [CALL], "reasoning_content": "hm"},
    {"role": "tool", "tool_call_id": "c1", "content": "3"},
    {"role": "user", "content": "and now?"},
]
BODIES = [
    (
        "/v1/chat/completions",
        {
            "model": "caller",
            "messages": CONVERSATION,
            "max_completion_tokens": 50,
            "n": 2,
            "tools": [TOOL],
            "tool_choice": {"type": "function", "function": {"name": "add"}},
            "parallel_tool_calls": False,
            "logprobs": True,
            "top_logprobs": 2,
            "chat_template_kwargs": {"enable_thinking": True},
            **SAMPLING,
        },
    ),
    (
        "/v1/chat/completions",
        {
            "model": "pictures",
            "messages": [{"role": "user", "content": [{"type": "text", "text": "a"}, PICTURE]}],
            "tools": [TOOL],
            "response_format": {
                "type": "json_schema",
                "json_schema": {"name": "s", "schema": SCHEMA, "strict": True},
            },
        },
    ),
    (
        "/v1/completions",
        {
            "model": "poem",
            "prompt": ["abc", [97, 98]],
            "suffix": "",  # one behind tokens would be refused
            "max_tokens": 20,
            "n": 1,
            "best_of": 2,
            "echo": False,
            "logprobs": 2,
            "structured_outputs": {"json": SCHEMA},
            **SAMPLING,
        },
    ),
    (
        "/v1/responses",
        {
            "model": "caller",
            "instructions": "Be kind.",
            "input": [
                {"role": "user", "content": [{"type": "input_text", "text": "hi"}]},
                {"type": "reasoning", "content": [{"type": "reasoning_text", "text": "hm"}]},
                {"type": "function_call", "call_id": "c1", "name": "add", "arguments": "{}"},
                {"type": "function_call_output", "call_id": "c1", "output": "3"},
            ],
            "tools": [{"type": "function", **FUNCTION}],
            "tool_choice": "auto",
            "parallel_tool_calls": False,
            "text": {"format": {"type": "json_schema", "name": "s", "schema": SCHEMA}},
            "reasoning": {"effort": "low"},
            "metadata": {"a": "b"},
            "user": "u",
            "max_output_tokens": 50,
            "temperature": 1,
            "top_p": 0.5,
            "stream": False,
        },
    ),
    (
        "/v1/messages",
        {
            "model": "caller",
            "max_tokens": 50,
            "system": [{"type": "text", "text": "Be kind."}],
            "messages": [
                {"role": "user", "content": "hi"},
                {
                    "role": "assistant",
                    "content": [
                        {"type": "thinking", "thinking": "hm", "signature": "s"},
                        {"type": "tool_use", "id": "c1", "name": "add", "input": {"n": 1}},
                    ],
                },
                {
                    "role": "user",
                    "content": [
                        {"type": "tool_result", "tool_use_id": "c1", "content": "3"},
                        {"type": "text", "text": "and?"},
                    ],
                },
            ],
            "tools": [{"name": "add", "input_schema": SCHEMA}],
            "tool_choice": {"type": "auto", "disable_parallel_tool_use": True},
            "thinking": {"type": "adaptive"},
            "stop_sequences": ["STOP"],
            "temperature": 0.5,
            "top_k": 3,
            "top_p": 0.5,
            "stream": False,
            "metadata": {"user_id": "u"},
        },
    ),
    (
        "/v1/messages/count_tokens",
        {"model": "letters", "messages": [{"role": "user", "content": "hi"}]},
    ),
    ("/v1/embeddings", {"model": "vectors", "input": ["a", "b"], "encoding_format": "float"}),
    (
        "/v1/rerank",
        {"model": "scores", "query": "a", "documents": ["a", {"text": "b"}], "top_n": 1},
    ),
    (
        "/tokenize",
        {"model": "caller", "messages": CONVERSATION, "tools": [TOOL], "return_token_strs": True},
    ),
    ("/detokenize", {"model": "letters", "tokens": [97, 98]}),
]
VALUES = [
    *(None, True, False, 0, 1, -1, 2, 0.5, -0.0, 1e308, 5e-324, 2**31, 2**63, 2**64, -(2**63)),
    *("", "a", "\x00", "é🙂", "a" * 5000, "{}", "[1]", "null", "<think>", "{{ x }}", "auto"),
    *("letters", "poem", "letters:loud", "vectors", "nothing", "json_object", "required"),
    *([], {}, [[]], [{}], {"": ""}, [None], ["a", 1], [0] * 300, {"type": "text"}),
    *({"type": "object"}, {"$ref": "#"}, {"name": "add"}, {"role": "user", "content": "a"}),
]
NAMES = ["", "a", "type", "name", "$ref", "stream", "content", "model", "é", "n" * 300]
DEEP = "deep"  # stands for JSON text of many levels


def places(value, found):
    """Add each object and list in a value to `found`."""
    if isinstance(value, dict | list):
        found.append(value)
        for each in value.values() if isinstance(value, dict) else value:
            places(each, found)
    return found


def mutated(body, random):
    """Return a copy of a body with one to four changes."""
    body = copy.deepcopy(body)
    for _ in range(random.randint(1, 4)):
        everywhere = places(body, [])
        place = random.choice(everywhere)
        value = random.choice([*VALUES, DEEP, random.choice(everywhere)])
        value = copy.deepcopy(value)
        keys = list(place) if isinstance(place, dict) else list(range(len(place)))
        action = random.choice(["set", "set", "set", "drop", "add", "stream"])
        if action == "stream":
            body["stream"] = True
        elif action == "add" and isinstance(place, dict):
            place[random.choice(NAMES)] = value
        elif action == "add":
            place.insert(random.randint(0, len(place)), value)
        elif keys:
            key = random.choice(keys)
            if action == "drop":
                del place[key]
            else:
                place[key] = value
    return body


def written(body, random):
    levels = random.choice([100, 126, 200, 300, 1000])
    text = json.dumps(body, ensure_ascii=random.random() < 0.9)
    data = text.replace(f'"{DEEP}"', "[" * levels + "]" * levels).encode()
    if random.random() < 0.1:  # broken bytes
        at = random.randrange(len(data))
        data = (
            data[:at] + random.randbytes(random.randint(0, 3)) + data[at + random.randint(0, 3) :]
        )
    return data


@pytest.mark.parametrize(("number", "path"), list(enumerate(path for path, _ in BODIES)))
def test_no_change_of_a_request_fails_in_the_server(letters, number, path):
    dice = random.Random(f"{SEED} {number}")
    connection = http.client.HTTPConnection("127.0.0.1", letters[1], timeout=60)
    statuses = set()
    for _ in range(ROUNDS):
        data = written(mutated(BODIES[number][1], dice), dice)
        connection.request("POST", path, data)
        answer = connection.getresponse()
        text = answer.read()
        statuses.add(answer.status)
        assert answer.status < 500, (answer.status, text[:1000], data[:5000])
        assert b"server_error" not in text and b"api_error" not in text, (text, data[:5000])
    connection.request("POST", path, json.dumps(BODIES[number][1]))
    answer = connection.getresponse()
    assert answer.status == 200, answer.read()
    answer.read()
    assert 400 in statuses
    connection.close()
