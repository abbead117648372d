"""Requests of OpenAI's Responses are read into the common form, and pieces become its events."""

import base64
import struct

import pytest
from core_generate.chat import CallArguments, CallBegin, Content, FieldError, Reasoning, render
from core_generate.chat.anthropic_events import sse
from core_generate.chat.responses import read_response_request
from core_generate.chat.responses_events import ResponseEvents, response
from core_generate.engine import Structure

from core.errors import unavailable

PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + struct.pack(">II", 1, 1) + b"\x08\x06\0\0\0"
URL = f"data:image/png;base64,{base64.b64encode(PNG).decode()}"
TOOL = {"type": "function", "name": "add", "parameters": {"type": "object"}, "strict": True}
BODY = {"model": "m", "input": "hi"}
PIECES = [
    Reasoning("hm"),
    Content("a"),
    Content("b"),
    CallBegin(0, "call_1", "add"),
    CallArguments(0, '{"a":'),
    CallArguments(0, "1}"),
]


def test_items_become_messages():
    items = [
        {"role": "developer", "content": "be kind"},
        {"role": "user", "content": [
            {"type": "input_text", "text": "1+2?"},
            {"type": "input_image", "image_url": URL},
        ]},
        {"type": "reasoning", "id": "rs", "content": [{"type": "reasoning_text", "text": "hm"}]},
        {"type": "message", "role": "assistant", "id": "x", "status": "completed",
         "content": [{"type": "output_text", "text": "I add.", "annotations": []}]},
        {"type": "function_call", "call_id": "c1", "name": "add", "arguments": '{"a": 1}'},
        {"type": "function_call", "call_id": "c2", "name": "add", "arguments": "{}"},
        {"type": "function_call_output", "call_id": "c1", "output": "1"},
        {"type": "function_call_output", "call_id": "c2", "output": [{"type": "input_text", "text": "2"}]},
    ]  # fmt: skip
    more = {"instructions": "short", "max_output_tokens": 5, "temperature": 0.5, "tools": [TOOL]}
    more |= {"reasoning": {"effort": "low"}, "store": False, "include": [], "stream": True}

    request = read_response_request({"model": "m", "input": items, **more})

    found = request.conversation
    roles = [each["role"] for each in found.messages]
    assert roles == ["system", "developer", "user", "assistant", "tool", "tool"]
    own = found.messages[3]
    assert own["reasoning_content"] == "hm"
    assert [each["id"] for each in own["tool_calls"]] == ["c1", "c2"]
    assert found.images == [PNG]
    assert request.sampling == {"max_tokens": 5, "temperature": 0.5}
    assert request.arguments == {"reasoning_effort": "low", "enable_thinking": True}
    assert (request.stream, request.tools.choice) == (True, "auto")
    text = render(
        "chatml", found, request.tools.functions, bos="", eos="", media_marker="<__media__>"
    )
    assert "I add." in text


def test_format_of_the_text_is_a_structure():
    form = {"type": "json_schema", "name": "x", "schema": {"type": "array"}, "strict": True}

    assert read_response_request({**BODY, "text": {"format": form}}).structure == Structure(
        schema={"type": "array"}
    )
    assert read_response_request({**BODY, "text": {"format": {"type": "text"}}}).structure is None
    assert read_response_request(BODY).structure is None


def test_choice_of_a_tool_is_a_structure():
    named = {"type": "function", "name": "add"}

    assert (
        read_response_request({**BODY, "tools": [TOOL], "tool_choice": named}).tools.name == "add"
    )
    assert read_response_request(
        {**BODY, "tools": [TOOL], "tool_choice": "required"}
    ).tools.structure
    assert read_response_request({**BODY, "tool_choice": "auto"}).tools.choice == "none"


@pytest.mark.parametrize(
    "change, field",
    [
        ({"model": None}, "model"),
        ({"input": None}, "input"),
        ({"input": []}, "input"),
        ({"input": [1]}, "input[0]"),
        ({"input": [{"type": "item_reference", "id": "x"}]}, "input[0].type"),
        ({"input": [{"role": "tool", "content": ""}]}, "input[0].role"),
        ({"input": [{"role": "user", "content": [{"type": "input_file"}]}]}, "input[0].content[0].type"),
        ({"input": [{"role": "user", "content": [{"type": "input_image", "image_url": "http://x"}]}]},
         "input[0].content[0].image_url"),
        ({"input": [{"type": "function_call", "name": "f", "arguments": "{"}]}, "input[0].arguments"),
        ({"input": [{"type": "function_call_output", "output": ""}]}, "input[0].call_id"),
        ({"previous_response_id": "resp_1"}, "previous_response_id"),
        ({"background": True}, "background"),
        ({"store": True}, "store"),
        ({"truncation": "auto"}, "truncation"),
        ({"top_logprobs": 3}, "top_logprobs"),
        ({"colour": 1}, "colour"),
        ({"max_output_tokens": 0}, "max_output_tokens"),
        ({"temperature": 3}, "temperature"),
        ({"tools": [{"type": "web_search"}]}, "tools[0].type"),
        ({"tools": [TOOL, TOOL]}, "tools[1]"),
        ({"tools": [{**TOOL, "name": f"f{at}"} for at in range(513)]}, "tools"),
        ({"metadata": {f"n{at}": "" for at in range(17)}}, "metadata"),
        ({"metadata": {"n" * 65: ""}}, "metadata"),
        ({"metadata": {"n": "v" * 513}}, "metadata.n"),
        ({"metadata": {"n": 1}}, "metadata.n"),
        ({"user": "u" * 513}, "user"),
        ({"tool_choice": {"type": "function", "name": "add"}}, "tool_choice.name"),
        ({"text": {"format": {"type": "xml"}}}, "text.format.type"),
        ({"text": {"format": {"type": "json_schema", "schema": {}}}}, "text.format.name"),
        ({"text": {"verbosity": "low"}}, "text.verbosity"),
        ({"reasoning": {"effort": "most"}}, "reasoning.effort"),
    ],
)  # fmt: skip
def test_wrong_field_is_named(change, field):
    with pytest.raises(FieldError) as error:
        read_response_request({**BODY, **change})

    assert error.value.field == field


def streamed(pieces=PIECES, finish="stop"):
    events = ResponseEvents("resp_1", {**BODY, "tools": [TOOL]}, 1_700_000_000)
    found = events.begin()
    for piece in pieces:
        found += events.feed([piece])
    return [*found, *events.end(finish, prompt_tokens=5, cached_tokens=2, tokens=7)]


def test_events_are_numbered_and_every_item_is_added_and_done():
    events = streamed()

    assert [each["sequence_number"] for each in events] == list(range(len(events)))
    for kind in ("added", "done"):
        items = [each for each in events if each["type"] == f"response.output_item.{kind}"]
        assert [each["output_index"] for each in items] == [0, 1, 2]
    assert all(
        each["item"]["status"] == "in_progress"
        for each in events
        if each["type"].endswith("item.added")
    )


def test_openais_package_reads_the_events_as_the_whole_response():
    pytest.importorskip("openai", reason="the package openai is not installed")
    from openai.types.responses import Response, ResponseStreamEvent
    from pydantic import TypeAdapter

    read = TypeAdapter(ResponseStreamEvent)
    for event in streamed():
        data = sse(event).split(b"data: ")[1]
        last = read.validate_json(data)
        assert last.type == event["type"]

    counts = {"prompt_tokens": 5, "cached_tokens": 2, "tokens": 7}
    request = {**BODY, "tools": [TOOL]}
    document = response("resp_1", request, 1_700_000_000, PIECES, "stop", **counts)
    whole = Response.model_validate(document)
    assert last.type == "response.completed"
    assert last.response == whole
    assert whole.output_text == "ab"
    assert [each.type for each in whole.output] == ["reasoning", "message", "function_call"]
    assert whole.output[2].arguments == '{"a":1}'
    assert whole.usage.total_tokens == 12


def test_answer_that_reached_its_length_is_incomplete():
    last = streamed([Content("a")], "length")[-1]

    assert last["type"] == "response.incomplete"
    assert last["response"]["incomplete_details"] == {"reason": "max_output_tokens"}
    assert last["response"]["output"][0]["status"] == "incomplete"


def test_answer_without_text_has_an_empty_message():
    assert streamed([])[-1]["response"]["output"][0]["content"][0]["text"] == ""


def test_error_ends_the_stream_with_a_failed_response():
    events = ResponseEvents("resp_1", BODY, 1)
    events.begin()

    (last,) = events.fail(unavailable("model 'm' was unloaded"))

    assert last["type"] == "response.failed"
    assert last["response"]["error"] == {
        "code": "server_error",
        "message": "model 'm' was unloaded",
    }
