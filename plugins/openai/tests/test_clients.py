"""One table: what the packages openai and anthropic do, with every engine and with a plain model.

The same tests run for each. What an engine cannot do is refused with the name of the field; the parameter
`engine` of its configuration says what it can do. A test is skipped without the backend or its model.
"""

import asyncio
import json
import urllib.error

import pytest

from .served_engines import FEW

openai = pytest.importorskip("openai")
anthropic = pytest.importorskip("anthropic")

SCHEMA = {
    "type": "object",
    "properties": {"a": {"type": "integer", "minimum": 0, "maximum": 9}},
    "required": ["a"],
    "additionalProperties": False,
}
TOOL = {"type": "function", "function": {"name": "add", "parameters": SCHEMA}}


def text_of(parts, index=0):
    choices = [each for part in parts for each in part.choices if each.index == index]
    return "".join(each.delta.content or "" for each in choices)


def test_a_chat_is_the_same_whole_and_in_events(served):
    same = {"temperature": 0} if served.able("temperature") else {}

    whole = served.chat(**same).choices[0]
    parts = list(served.chat(**same, stream=True))

    assert text_of(parts) == whole.message.content
    assert parts[-1].choices[0].finish_reason == whole.finish_reason


async def test_the_async_client_runs_several_chats(served):
    more = {"max_tokens": 3} if served.able("max_tokens") else {}
    messages = [{"role": "user", "content": "x"}]
    async with openai.AsyncOpenAI(base_url=f"{served.address}/v1", api_key="none") as client:

        async def one():
            stream = await client.chat.completions.create(
                model="m", messages=messages, stream=True, **more
            )
            return [each async for each in stream]

        found = await asyncio.wait_for(asyncio.gather(one(), one(), one()), 60)

    assert all(parts[-1].choices[0].finish_reason for parts in found)


def test_several_prompts_and_choices_are_completed(served):
    with served.doing("max_tokens", "max_tokens"):
        found = served.openai.completions.create(model="m", prompt=["a", "b"], n=2, max_tokens=3)
        assert [each.index for each in found.choices] == [0, 1, 2, 3]
    parts = list(served.openai.completions.create(model="m", prompt="a", stream=True))

    assert parts[-1].choices[0].finish_reason in ("stop", "length")


def test_a_choice_of_several_has_its_own_events(served):
    parts = list(served.chat(n=2, stream=True))

    assert {each.index for part in parts for each in part.choices} == {0, 1}


def test_the_same_seed_gives_the_same_text(served):
    with served.doing("seed", "seed", "temperature"):
        first, again = (
            served.chat(seed=3, temperature=1).choices[0].message.content for _ in range(2)
        )
        assert first == again


def test_logprobs(served):
    with served.doing("logprobs", "logprobs"):
        (choice,) = served.chat(logprobs=True).choices
        assert all(each.logprob <= 0 for each in choice.logprobs.content)
        assert len(choice.logprobs.content) >= 1


def test_a_stop_string_ends_the_text_and_is_named(served):
    if not served.able("stop"):
        with served.doing("stop", "stop"):
            served.chat(stop=["x"])
        return
    whole = served.chat(temperature=0).choices[0].message.content
    stop = whole[-2:]

    (choice,) = served.chat(temperature=0, stop=["\0", stop]).choices

    assert choice.message.content == whole[: whole.index(stop)]
    assert (choice.finish_reason, choice.stop_reason) == ("stop", stop)


@pytest.mark.parametrize("stream", [False, True])
def test_a_json_schema_is_kept_to(served, stream):
    form = {"type": "json_schema", "json_schema": {"name": "x", "schema": SCHEMA}}
    with served.doing("response_format", "schema"):
        parts = served.complete(response_format=form, stream=stream, max_tokens=100)
        text = text_of(parts) if stream else parts[0].choices[0].message.content
        assert 0 <= json.loads(text)["a"] <= 9


@pytest.mark.parametrize("choice", ["required", {"type": "function", "function": {"name": "add"}}])
def test_a_tool_is_called(served, choice):
    with served.doing("tool_choice", "schema"):
        (found,) = served.complete(
            tools=[TOOL], tool_choice=choice, parallel_tool_calls=False, max_tokens=200
        )
        (call,) = found.choices[0].message.tool_calls
        assert call.function.name == "add"
        assert 0 <= json.loads(call.function.arguments)["a"] <= 9
        assert found.choices[0].finish_reason == "tool_calls"


def test_the_arguments_of_a_call_are_streamed(served):
    with served.doing("tool_choice", "schema"):
        parts = served.complete(
            tools=[TOOL], tool_choice="required", parallel_tool_calls=False, stream=True,
            max_tokens=200,
        )  # fmt: skip
        calls = [call for part in parts for call in part.choices[0].delta.tool_calls or []]
        arguments = "".join(call.function.arguments or "" for call in calls)
        assert calls[0].function.name == "add"
        assert 0 <= json.loads(arguments)["a"] <= 9


def test_a_model_that_may_call_a_tool_answers(served):
    may = {"tools": [TOOL], "tool_choice": "auto", **served.few()}

    plain, found = served.chat(**served.few()), served.chat(**may)
    parts = list(served.chat(**may, stream=True))

    (choice,) = found.choices
    assert choice.message.content and choice.message.tool_calls is None
    assert choice.finish_reason in ("stop", "length")
    assert text_of(parts) == choice.message.content
    if served.able("counts"):  # the model has read the tools
        assert found.usage.prompt_tokens > plain.usage.prompt_tokens + 10


@pytest.mark.parametrize("stream", [False, True])
def test_a_call_of_the_models_own_accord_is_read(served, stream):
    if served.kind != "python":
        return  # no other model of these calls a tool unless it must
    found = served.chat("call add", tools=[TOOL], tool_choice="auto", stream=stream)

    if stream:
        parts = list(found)
        choice = parts[-1].choices[0]
        calls = [call for part in parts for call in part.choices[0].delta.tool_calls or []]
        assert text_of(parts) == ""
    else:
        choice = found.choices[0]
        calls = choice.message.tool_calls
    assert [each.function.name for each in calls if each.function.name] == ["add"]
    assert json.loads("".join(each.function.arguments or "" for each in calls)) == {"a": 1}
    assert choice.finish_reason == "tool_calls"


def test_a_model_is_unloaded_and_loaded_again(served):
    def asked(verb):
        return served.openai.post(f"/models/m/{verb}", cast_to=object)

    if served.kind == "python":  # it is in no repository
        with pytest.raises(openai.InternalServerError, match="explicit"):
            asked("load")
        return
    try:
        assert asked("unload")["status"] == "success"
        assert "m" not in [each.id for each in served.openai.models.list()]
        with pytest.raises(openai.APIStatusError):
            served.chat()
    finally:
        loaded = asked("load")

    assert loaded["id"] == served.openai.models.retrieve("m").id == "m"
    assert served.chat().choices[0].finish_reason


def test_the_last_event_has_the_usage(served):
    parts = list(served.chat(stream=True, stream_options={"include_usage": True}))

    if served.able("counts"):
        assert parts[-1].usage.prompt_tokens > 1
        assert 1 <= parts[-1].usage.completion_tokens <= FEW
    assert all(part.usage is None for part in parts[:-1])


def test_a_model_of_texts_refuses_embeddings_and_ranks(served):
    with pytest.raises(openai.BadRequestError) as refused:
        served.openai.embeddings.create(model="m", input="x")
    with pytest.raises(urllib.error.HTTPError) as ranked:
        served.ask("/v1/rerank", {"query": "x", "documents": ["y"]})

    assert refused.value.param == "model"
    assert json.load(ranked.value)["error"]["param"] == "model"


def test_responses(served):
    more = {"max_output_tokens": FEW} if served.able("max_tokens") else {}

    whole = served.openai.responses.create(model="m", input="Name a fruit.", store=False, **more)
    events = list(
        served.openai.responses.create(model="m", input="x", store=False, stream=True, **more)
    )

    assert isinstance(whole.output_text, str) and whole.status in ("completed", "incomplete")
    assert events[0].type == "response.created"
    assert events[-1].type in ("response.completed", "response.incomplete")


def test_tokens_of_a_text_make_the_text(served):
    if not served.able("max_tokens"):
        with pytest.raises(urllib.error.HTTPError, match="400"):
            served.ask("/tokenize", {"prompt": "a b"})
        return
    found = served.ask("/tokenize", {"prompt": "a small town", "add_special_tokens": False})

    assert served.ask("/detokenize", {"tokens": found["tokens"]})["prompt"] == "a small town"


def test_a_client_that_leaves_frees_its_place(served):
    more = {"max_tokens": 4000 if served.able("max_tokens") else None}
    if served.able("ignore_eos"):
        more["extra_body"] = {"ignore_eos": True}
    stream = served.chat("forever", stream=True, **{k: v for k, v in more.items() if v})
    for _, _ in zip(stream, range(2), strict=False):
        pass
    stream.close()

    assert served.chat("x").choices[0].finish_reason  # the engines have one place


def test_unknown_fields_and_models_are_refused_by_name(served):
    with pytest.raises(openai.BadRequestError) as unknown:
        served.chat(extra_body={"wrong": 1})
    with pytest.raises(openai.NotFoundError) as missing:
        served.openai.completions.create(model="other", prompt="x")

    assert (unknown.value.param, missing.value.code) == ("wrong", "model_not_found")


# Anthropic's package -------------------------------------------------------------------

HELLO = [{"role": "user", "content": "Name a fruit."}]


@pytest.mark.parametrize("stream", [False, True])
def test_a_message(served, stream):
    body = {"model": "m", "max_tokens": FEW, "messages": HELLO, "system": "Be short."}
    if stream:
        with served.anthropic.messages.stream(**body) as events:
            found = events.get_final_message()
    else:
        found = served.anthropic.messages.create(**body)

    assert found.content[0].type == "text"
    assert found.stop_reason in ("max_tokens", "end_turn")
    if served.able("counts"):
        assert 1 <= found.usage.output_tokens <= FEW and found.usage.input_tokens > 1


def test_a_message_that_must_use_a_tool(served):
    tool = {"name": "add", "input_schema": SCHEMA}
    one = {"type": "any", "disable_parallel_tool_use": True}
    with served.doing("tool_choice", "schema", error=anthropic.BadRequestError):
        for _ in range(8):  # blanks may fill an answer up to its limit, as in Served.complete
            found = served.anthropic.messages.create(
                model="m", max_tokens=200, messages=HELLO, tools=[tool], tool_choice=one
            )
            if found.stop_reason != "max_tokens":
                break
        call = found.content[-1]
        assert (call.type, call.name) == ("tool_use", "add")
        assert 0 <= call.input["a"] <= 9
        assert found.stop_reason == "tool_use"


def test_a_stop_sequence_of_a_message_is_named(served):
    if not served.able("stop"):
        return
    body = {"model": "m", "max_tokens": FEW, "messages": HELLO, "extra_body": {"temperature": 0}}
    whole = served.anthropic.messages.create(**body).content[0].text
    stop = whole[-2:]

    found = served.anthropic.messages.create(**body, stop_sequences=[stop])

    assert (found.stop_reason, found.stop_sequence) == ("stop_sequence", stop)


def test_tokens_of_a_message_are_counted(served):
    if served.able("counts"):
        found = served.anthropic.messages.count_tokens(model="m", messages=HELLO)
        assert found.input_tokens > 1
        return
    with pytest.raises(anthropic.BadRequestError, match="does not count tokens"):
        served.anthropic.messages.count_tokens(model="m", messages=HELLO)
