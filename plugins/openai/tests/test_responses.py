"""OpenAI's Responses: by the package openai over letters and a Python model, and byte by byte."""

import json

import pytest

openai = pytest.importorskip("openai")

RESPONSES = "/v1/responses"
SCHEMA = {
    "type": "object",
    "properties": {"n": {"type": "integer"}},
    "required": ["n"],
    "additionalProperties": False,
}
ADD = {"type": "function", "name": "add", "parameters": SCHEMA, "strict": True}


@pytest.fixture
def address(letters):
    return f"http://127.0.0.1:{letters[1]}/v1"


@pytest.fixture
def sdk(address):
    with openai.OpenAI(base_url=address, api_key="none", max_retries=0) as found:
        yield found


def test_a_response_is_the_same_whole_and_in_events(sdk):
    body = {"model": "letters", "input": "hi", "instructions": "Be kind.", "max_output_tokens": 20}

    whole = sdk.responses.create(**body)
    with sdk.responses.stream(**body) as stream:
        kinds = [each.type for each in stream]
    (last,) = [each for each in sdk.responses.create(**body, stream=True)][-1:]

    assert len(whole.output_text) == 20 and last.response.output_text == whole.output_text
    assert (whole.status, whole.incomplete_details.reason) == ("incomplete", "max_output_tokens")
    assert last.response.usage == whole.usage and whole.usage.output_tokens == 20
    assert whole.usage.input_tokens > 10 and whole.store is False
    assert kinds[:2] == ["response.created", "response.in_progress"]
    assert "response.output_text.delta" in kinds and kinds[-1] == "response.incomplete"


async def test_async(address):
    async with openai.AsyncOpenAI(base_url=address, api_key="none", max_retries=0) as sdk:
        whole = await sdk.responses.create(model="poem", input="x")
        async with sdk.responses.stream(model="poem", input="x") as stream:
            final = await stream.get_final_response()

    assert whole.output_text == final.output_text == "one two STOP three"
    assert final.status == "completed"


def test_items_make_a_conversation(sdk):
    call = {"type": "function_call", "call_id": "c1", "name": "add", "arguments": '{"n": 1}'}
    items = [
        {"role": "user", "content": [{"type": "input_text", "text": "x"}]},
        call,
        {"type": "function_call_output", "call_id": "c1", "output": "3"},
    ]

    found = sdk.responses.create(model="letters", input=items, max_output_tokens=3)

    assert len(found.output_text) == 3


@pytest.mark.parametrize("stream", [False, True])
def test_tools_are_called(sdk, stream):
    body = {"model": "caller", "input": "x", "tools": [ADD]}

    if stream:
        with sdk.responses.stream(**body) as events:
            found = events.get_final_response()
    else:
        found = sdk.responses.create(**body)

    message, call = found.output
    assert message.content[0].text.startswith("Let me see.")
    assert (call.type, call.name) == ("function_call", "add")
    assert json.loads(call.arguments) == {"a": 1, "b": [2, "ä"]}


@pytest.mark.parametrize("choice", ["required", {"type": "function", "name": "add"}])
def test_a_tool_must_be_called(sdk, choice):
    found = sdk.responses.create(model="letters", input="x", tools=[ADD], tool_choice=choice)

    (call,) = found.output
    assert (call.name, json.loads(call.arguments)) == ("add", {"n": 0})


def test_structured_output(sdk):
    form = {"type": "json_schema", "name": "s", "schema": SCHEMA, "strict": True}

    found = sdk.responses.create(model="letters", input="x", text={"format": form})

    assert json.loads(found.output_text) == {"n": 0}


def test_reasoning_is_an_item_of_its_own(sdk):
    reasoning, message = sdk.responses.create(model="thinker", input="x").output

    assert (reasoning.type, reasoning.content[0].text) == ("reasoning", "hm")
    assert message.content[0].text == "yes"


def test_a_python_model_answers_without_counts(client):
    status, found = client.ask(RESPONSES, {"model": "words", "input": "a b"})

    assert (status, found["status"], found["usage"]) == (200, "completed", None)
    assert found["output"][0]["content"][0]["text"] == "a b "


@pytest.mark.parametrize(
    ("change", "param"),
    [
        ({"store": True}, "store"),
        ({"previous_response_id": "resp_1"}, "previous_response_id"),
        ({"conversation": "c"}, "conversation"),
        ({"tools": [{"type": "web_search"}]}, "tools[0].type"),
        ({"max_output_tokens": 5}, "max_output_tokens"),
        ({"max_output_tokens": 2**40}, "max_output_tokens"),
        ({"text": {"format": {"type": "json_object"}}}, "text.format"),
        ({"n": 2}, "n"),
        ({"top_p": 0}, "top_p"),
        ({"user": 5}, "user"),
        ({"metadata": "a"}, "metadata"),
        ({"metadata": {"a": {"b": 1}}}, "metadata.a"),
        ({"model": "nothing"}, "model"),
    ],
)
def test_a_wrong_field_is_named(client, change, param):
    status, found = client.ask(RESPONSES, {"model": "words", "input": "x", **change})

    assert status == (404 if param == "model" else 400)
    assert found["error"]["param"] == param


def test_an_error_within_a_stream_is_its_last_event(client, models):
    models.gate.clear()
    body = {"model": "broken", "input": "late", "stream": True}
    answer = client.begin(RESPONSES, body).getresponse()
    begin = answer.read1()
    models.gate.set()
    *_, last, _ = (begin + answer.read()).decode().split("\n\n")

    assert last.startswith("event: response.failed\n")
    found = json.loads(last.partition("data: ")[2])
    assert found["response"]["error"]["message"] == "the model has no more text"


def test_a_client_that_goes_cancels_the_model(client, models):
    connection = client.begin(RESPONSES, {"model": "endless", "input": "x", "stream": True})
    answer = connection.getresponse()
    assert answer.read(100)

    answer.close()
    connection.close()

    assert models.ended.wait(10)


def test_they_are_described(client):
    paths = client.ask("/openapi.json")[1]["paths"]

    assert {RESPONSES, "/v1/messages", "/v1/messages/count_tokens"} <= paths.keys()
