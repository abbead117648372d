"""Anthropic's messages: by the package anthropic over letters and a Python model, and byte by byte."""

import asyncio
import json

import pytest
from frontend_openai.generation import Generation

from frontends.shared.access.tokens import line_of

anthropic = pytest.importorskip("anthropic")

MESSAGES, COUNT = "/v1/messages", "/v1/messages/count_tokens"
ADD = {
    "name": "add",
    "input_schema": {
        "type": "object",
        "properties": {"a": {"type": "integer"}},
        "required": ["a"],
        "additionalProperties": False,
    },
}


def user(text):
    return [{"role": "user", "content": text}]


@pytest.fixture
def sdk(letters):
    address = f"http://127.0.0.1:{letters[1]}"
    with anthropic.Anthropic(base_url=address, api_key="none", max_retries=0) as found:
        yield found


def test_a_message_is_the_same_whole_and_in_events(sdk):
    body = {"model": "letters", "messages": user("hi"), "max_tokens": 20, "system": "Be kind."}

    whole = sdk.messages.create(**body)
    with sdk.messages.stream(**body) as stream:
        text = "".join(stream.text_stream)
        final = stream.get_final_message()

    assert len(whole.content[0].text) == 20 and text == whole.content[0].text
    assert final.content[0].text == text
    assert (whole.stop_reason, final.stop_reason) == ("max_tokens", "max_tokens")
    assert whole.usage.output_tokens == final.usage.output_tokens == 20
    assert whole.usage.input_tokens > 10 and whole.id.startswith("msg_")


def test_events_are_named_and_in_order(sdk):
    body = {"model": "poem", "messages": user("x"), "max_tokens": 100, "stream": True}

    kinds = [each.type for each in sdk.messages.create(**body)]

    assert kinds[:2] == ["message_start", "content_block_start"]
    assert kinds[-3:] == ["content_block_stop", "message_delta", "message_stop"]
    assert set(kinds[2:-3]) == {"content_block_delta"}


def test_most_events_are_made_by_compiled_code(sdk, monkeypatch):
    slowly, receive = [], Generation.receive
    monkeypatch.setattr(Generation, "receive", lambda *each: (slowly.append(1), receive(*each))[1])
    body = {"model": "letters", "messages": user("x"), "max_tokens": 200}
    whole = sdk.messages.create(**body)  # the server learns how the model reports its tokens

    slowly.clear()
    with sdk.messages.stream(**body) as stream:
        kinds = [each.type for each in stream]
        final = stream.get_final_message()

    assert kinds.count("content_block_delta") > 50 and len(slowly) < 10
    assert final.content[0].text == whole.content[0].text and final.usage == whole.usage
    assert final.stop_reason == "max_tokens"


async def test_many_async_streams(letters):
    address = f"http://127.0.0.1:{letters[1]}"
    async with anthropic.AsyncAnthropic(base_url=address, api_key="none", max_retries=0) as sdk:

        async def one(number):
            body = {"model": "letters", "messages": user("x"), "max_tokens": 5 + number}
            async with sdk.messages.stream(**body) as stream:
                return (await stream.get_final_message()).content[0].text

        found = await asyncio.wait_for(asyncio.gather(*map(one, range(8))), 60)

    assert [len(each) for each in found] == [5 + number for number in range(8)]


@pytest.mark.parametrize("stream", [False, True])
def test_a_stop_sequence_that_ends_the_text_is_named(sdk, stream):
    def answered(*stops):
        body = {"model": "poem", "messages": user("x"), "max_tokens": 100}
        if not stream:
            return sdk.messages.create(**body, stop_sequences=stops)
        with sdk.messages.stream(**body, stop_sequences=stops) as events:
            return events.get_final_message()

    found, other = answered("never", " STOP"), answered("never")

    assert (found.content[0].text, found.stop_reason) == ("one two", "stop_sequence")
    assert found.stop_sequence == " STOP"
    assert (other.stop_reason, other.stop_sequence) == ("end_turn", None)


def test_a_budget_of_thinking_that_no_template_reads_is_refused(sdk):
    thinking = {"type": "enabled", "budget_tokens": 1024}

    with pytest.raises(anthropic.BadRequestError, match=r"thinking\.budget_tokens: .*thinker"):
        sdk.messages.create(model="thinker", messages=user("x"), max_tokens=2000, thinking=thinking)
    found = sdk.messages.create(
        model="budget", messages=user("x"), max_tokens=2000, thinking=thinking
    )

    # The model repeats the last letter of its prompt: the template has written the budget.
    assert found.usage.input_tokens == len("<s>1024") - 2


@pytest.mark.parametrize("stream", [False, True])
def test_tools_are_called(sdk, stream):
    body = {"model": "caller", "messages": user("x"), "tools": [ADD], "max_tokens": 500}

    if stream:
        with sdk.messages.stream(**body) as events:
            found = events.get_final_message()
    else:
        found = sdk.messages.create(**body)

    text, call = found.content
    assert text.text.startswith("Let me see.")
    assert (call.name, call.input) == ("add", {"a": 1, "b": [2, "ä"]})
    assert found.stop_reason == "tool_use"


@pytest.mark.parametrize("choice", [{"type": "any"}, {"type": "tool", "name": "add"}])
def test_a_tool_must_be_called(sdk, choice):
    found = sdk.messages.create(
        model="letters", messages=user("x"), tools=[ADD], tool_choice=choice, max_tokens=500
    )

    (call,) = found.content
    assert (call.type, call.name, call.input) == ("tool_use", "add", {"a": 0})


def test_the_result_of_a_tool_is_sent_back(sdk):
    first = sdk.messages.create(model="caller", messages=user("x"), tools=[ADD], max_tokens=500)
    result = {"type": "tool_result", "tool_use_id": first.content[1].id, "content": "3"}
    messages = [
        *user("x"),
        {"role": "assistant", "content": [each.model_dump() for each in first.content]},
        {"role": "user", "content": [result]},
    ]

    found = sdk.messages.create(model="letters", messages=messages, max_tokens=4)

    assert len(found.content[0].text) == 4


@pytest.mark.parametrize("stream", [False, True])
def test_thinking_is_a_block_of_its_own(sdk, stream):
    body = {"model": "thinker", "messages": user("x"), "max_tokens": 500}

    if stream:
        with sdk.messages.stream(**body) as events:
            thinking, text = events.get_final_message().content
    else:
        thinking, text = sdk.messages.create(**body).content

    assert (thinking.thinking, text.text) == ("hm", "yes")


def test_counted_tokens_are_those_of_the_message(sdk):
    body = {"model": "letters", "messages": user("hello"), "system": "Be kind."}

    counted = sdk.messages.count_tokens(**body)

    used = sdk.messages.create(**body, max_tokens=1).usage
    assert counted.input_tokens == used.input_tokens > 10


def test_a_python_model_answers_without_counts(client):
    body = {"model": "words", "messages": user("a b"), "max_tokens": 5}

    status, found = client.ask(MESSAGES, body)
    answer = client.begin(MESSAGES, {**body, "stream": True}).getresponse()
    events = answer.read().decode()

    assert (status, found["content"]) == (200, [{"type": "text", "text": "a b "}])
    assert found["usage"]["input_tokens"] == found["usage"]["output_tokens"] == 0
    assert events.startswith("event: message_start\ndata: {")
    assert '"text":"a "' in events and events.endswith('data: {"type":"message_stop"}\n\n')
    status, found = client.ask(COUNT, body)
    assert (status, found["error"]["type"]) == (400, "invalid_request_error")


@pytest.mark.parametrize(
    ("change", "name"),
    [
        ({"max_tokens": None}, "max_tokens"),
        ({"max_tokens": 2**40}, "max_tokens"),
        ({"n": 2}, "n"),
        ({"stop_sequences": ["x"]}, "stop_sequences"),
        ({"temperature": 0.5}, "temperature"),
        ({"top_k": 3}, "top_k"),
        ({"messages": []}, "messages"),
        ({"tool_choice": {"type": "any"}}, "tool_choice.type"),
    ],
)
def test_a_wrong_field_is_named_in_anthropics_form(client, change, name):
    body = {"model": "words", "messages": user("x"), "max_tokens": 5, **change}

    status, found = client.ask(MESSAGES, body)

    assert (status, found["type"]) == (400, "error")
    assert found["error"]["type"] == "invalid_request_error"
    assert found["error"]["message"].startswith(f"{name}: ")


def test_errors_of_the_port_have_anthropics_form(open_server, connect):
    rules = {"inference": ("key", "secret")}
    client = connect(open_server(openai_restricted_api=rules)[1])
    body = {"model": "nothing", "messages": user("x"), "max_tokens": 5}

    for method, data, headers, wanted in (
        ("GET", None, {}, (405, "invalid_request_error")),
        ("POST", body, {}, (401, "authentication_error")),
        ("POST", body, {"key": "secret"}, (404, "not_found_error")),
    ):
        status, found = client.ask(MESSAGES, data, headers, method)
        assert (found["type"], (status, found["error"]["type"])) == ("error", wanted)
    assert client.ask("/v1/nothing")[1]["error"]["message"]


def test_an_error_within_a_stream_is_its_last_event(client, models):
    body = {"model": "broken", "messages": user("late"), "max_tokens": 5, "stream": True}

    models.gate.clear()
    answer = client.begin(MESSAGES, body).getresponse()
    begin = answer.read1()
    models.gate.set()
    *_, last, _ = (begin + answer.read()).decode().split("\n\n")

    assert last.startswith("event: error\n")
    assert json.loads(last.partition("data: ")[2])["error"]["type"] == "overloaded_error"


def test_a_client_that_goes_cancels_the_model(client, models):
    body = {"model": "endless", "messages": user("x"), "max_tokens": 5, "stream": True}
    connection = client.begin(MESSAGES, body)
    answer = connection.getresponse()
    assert answer.read(100)

    answer.close()
    connection.close()

    assert models.ended.wait(10)


def test_a_deadline_ends_a_message(client, models):
    models.gate.clear()
    body = {"model": "words", "messages": user("a b"), "max_tokens": 5}

    status, found = client.ask(MESSAGES, body, {"grpc-timeout": "200m"})

    assert (status, found["error"]["type"]) == (504, "timeout_error")


@pytest.mark.parametrize("field", ["api_key", "auth_token"])
def test_the_package_sends_a_token_as_key_or_as_token(open_server, tmp_path, monkeypatch, field):
    for name in ("ANTHROPIC_API_KEY", "ANTHROPIC_AUTH_TOKEN"):
        monkeypatch.delenv(name, raising=False)
    tokens = tmp_path / "tokens"
    tokens.write_text(line_of("ann", ["infer"], "a" * 32) + "\n")
    address = f"http://127.0.0.1:{open_server(auth_tokens=str(tokens))[1]}"
    body = {"model": "words", "max_tokens": 9, "messages": [{"role": "user", "content": "hi"}]}

    with anthropic.Anthropic(base_url=address, max_retries=0, **{field: "a" * 32}) as client:
        found = client.messages.create(**body)
    with (
        anthropic.Anthropic(base_url=address, max_retries=0, **{field: "b" * 32}) as client,
        pytest.raises(anthropic.AuthenticationError, match="the token is not known"),
    ):
        client.messages.create(**body)

    assert found.content[0].text == "hi "
