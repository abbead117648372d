"""The table of test_clients for Responses and the async clients, with every engine and with a plain model."""

import asyncio
import json

import pytest

from .served_engines import FEW
from .test_clients import HELLO, SCHEMA

openai = pytest.importorskip("openai")
anthropic = pytest.importorskip("anthropic")

ADD = {"type": "function", "name": "add", "parameters": SCHEMA, "strict": True}
FORMAT = {"format": {"type": "json_schema", "name": "x", "schema": SCHEMA, "strict": True}}
ATTEMPTS = 8  # blanks may fill an answer up to its limit, as in Served.complete


def few(served):
    """Return fields of Responses for a short answer: the same at each call, where the engine can do that."""
    fields = served.few()
    if "max_tokens" in fields:
        fields["max_output_tokens"] = fields.pop("max_tokens")
    return fields


def response(served, stream, **fields):
    """Return a response that is complete: as a whole, or the one that its events make."""
    body = {"model": "m", "input": "Name a fruit.", "store": False, **fields}
    if served.able("max_tokens"):
        body["max_output_tokens"] = 200
    for _ in range(ATTEMPTS):
        if stream:
            found = list(served.openai.responses.create(**body, stream=True))[-1].response
        else:
            found = served.openai.responses.create(**body)
        if found.status == "completed":
            break
    return found


@pytest.mark.parametrize("stream", [False, True])
def test_a_response_calls_a_tool(served, stream):
    with served.doing("tool_choice", "schema"):
        found = response(
            served, stream, tools=[ADD], tool_choice="required", parallel_tool_calls=False
        )
        (call,) = [each for each in found.output if each.type == "function_call"]
        assert (call.name, call.status) == ("add", "completed")
        assert 0 <= json.loads(call.arguments)["a"] <= 9


@pytest.mark.parametrize("stream", [False, True])
def test_a_response_keeps_to_a_format(served, stream):
    with served.doing("text.format", "schema"):
        found = response(served, stream, text=FORMAT)
        assert 0 <= json.loads(found.output_text)["a"] <= 9


def test_a_response_that_may_call_a_tool_answers(served):
    found = served.openai.responses.create(
        model="m",
        input="Name a fruit.",
        store=False,
        tools=[ADD],
        tool_choice="auto",
        **few(served),
    )

    (message,) = found.output
    assert (message.type, message.role) == ("message", "assistant")
    assert found.output_text


async def test_async_responses(served):
    body = {"model": "m", "input": "Name a fruit.", "store": False, **few(served)}
    async with openai.AsyncOpenAI(base_url=f"{served.address}/v1", api_key="none") as client:

        async def streamed():
            events = [each async for each in await client.responses.create(**body, stream=True)]
            pieces = [each.delta for each in events if each.type == "response.output_text.delta"]
            return events[-1].response.output_text, "".join(pieces)

        whole, (text, pieces), other = await asyncio.wait_for(
            asyncio.gather(client.responses.create(**body), streamed(), streamed()), 60
        )

    assert whole.output_text == text == pieces == other[0]
    if served.able("counts"):
        assert 1 <= whole.usage.output_tokens <= FEW


async def test_async_messages(served):
    body = {"model": "m", "max_tokens": FEW, "messages": HELLO}
    if served.able("temperature"):
        body["extra_body"] = {"temperature": 0}
    async with anthropic.AsyncAnthropic(base_url=served.address, api_key="none") as client:

        async def streamed():
            async with client.messages.stream(**body) as stream:
                text = "".join([each async for each in stream.text_stream])
                return text, await stream.get_final_message()

        whole, (text, final), (other, _) = await asyncio.wait_for(
            asyncio.gather(client.messages.create(**body), streamed(), streamed()), 60
        )

    assert whole.content[0].text == final.content[0].text == text == other
    assert whole.stop_reason == final.stop_reason
    assert whole.usage.output_tokens == final.usage.output_tokens


async def test_an_async_message_streams_the_use_of_a_tool(served):
    tool = {"name": "add", "input_schema": SCHEMA}
    one = {"type": "any", "disable_parallel_tool_use": True}
    body = {"model": "m", "max_tokens": 200, "messages": HELLO, "tools": [tool], "tool_choice": one}
    async with anthropic.AsyncAnthropic(base_url=served.address, api_key="none") as client:
        with served.doing("tool_choice", "schema", error=anthropic.BadRequestError):
            for _ in range(ATTEMPTS):
                async with client.messages.stream(**body) as stream:
                    found = await stream.get_final_message()
                if found.stop_reason != "max_tokens":
                    break
            call = found.content[-1]
            assert (call.type, call.name, found.stop_reason) == ("tool_use", "add", "tool_use")
            assert 0 <= call.input["a"] <= 9
