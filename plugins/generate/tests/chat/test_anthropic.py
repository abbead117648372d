"""Anthropic's messages are read into the common form, and pieces become its events."""

import base64
import json
import struct
import time

import orjson
import pytest
from core_generate.chat import CallArguments, CallBegin, Content, FieldError, Reasoning, render
from core_generate.chat.anthropic import error_document, read_message_request
from core_generate.chat.anthropic_events import MessageEvents, message, sse

from core.errors import CoreError, Kind, not_found

PNG = b"\x89PNG\r\n\x1a\n\0\0\0\rIHDR" + struct.pack(">II", 1, 1) + b"\x08\x06\0\0\0"
SOURCE = {"type": "base64", "media_type": "image/png", "data": base64.b64encode(PNG).decode()}
TOOL = {"name": "add", "description": "sum", "input_schema": {"type": "object", "properties": {}}}
BODY = {"model": "m", "max_tokens": 8, "messages": [{"role": "user", "content": "hi"}]}
PIECES = [
    Reasoning("hm"),
    Reasoning("m"),
    Content("a"),
    Content("b"),
    CallBegin(0, "call_1", "add"),
    CallArguments(0, '{"a":'),
    CallArguments(0, "1}"),
    CallBegin(1, "call_2", "add"),
    CallArguments(1, "{}"),
]


def test_a_conversation_with_tools_and_images_is_read():
    messages = [
        {"role": "user", "content": [{"type": "text", "text": "1+2?"}, {"type": "image", "source": SOURCE}]},
        {"role": "assistant", "content": [
            {"type": "thinking", "thinking": "hm", "signature": ""},
            {"type": "text", "text": "I add."},
            {"type": "tool_use", "id": "x", "name": "add", "input": {"a": 1}},
        ]},
        {"role": "user", "content": [
            {"type": "tool_result", "tool_use_id": "x", "content": [{"type": "text", "text": "3"}]},
            {"type": "text", "text": "So?"},
        ]},
    ]  # fmt: skip
    more = {"system": [{"type": "text", "text": "be kind", "cache_control": {"type": "ephemeral"}}]}
    more |= {
        "stop_sequences": ["END"],
        "temperature": 0,
        "top_k": 3,
        "stream": True,
        "tools": [TOOL],
    }
    more |= {"tool_choice": {"type": "any", "disable_parallel_tool_use": True}}

    request = read_message_request({**BODY, **more, "messages": messages})

    found = request.conversation
    assert [each["role"] for each in found.messages] == [
        "system",
        "user",
        "assistant",
        "tool",
        "user",
    ]
    assert found.images == [PNG]
    assert found.messages[2]["reasoning_content"] == "hm"
    assert found.messages[2]["tool_calls"][0]["function"]["arguments"] == {"a": 1}
    assert request.sampling == {"max_tokens": 8, "stop": ["END"], "top_k": 3, "temperature": 0}
    assert (request.stream, request.tools.choice) == (True, "required")
    assert request.tools.structure.schema["maxItems"] == 1
    text = render(
        "chatml", found, request.tools.functions, bos="", eos="", media_marker="<__media__>"
    )
    assert "So?" in text and "<__media__>" in text


def user(*blocks):
    return [{"role": "user", "content": list(blocks)}]


@pytest.mark.parametrize(
    "change, field",
    [
        ({"model": None}, "model"),
        ({"max_tokens": None}, "max_tokens"),
        ({"max_tokens": 0}, "max_tokens"),
        ({"temperature": 2}, "temperature"),
        ({"colour": 1}, "colour"),
        ({"messages": []}, "messages"),
        ({"messages": [{"role": "system", "content": ""}]}, "messages[0].role"),
        ({"messages": [{"role": "user", "content": 3}]}, "messages[0].content"),
        ({"messages": user({"type": "document"})}, "messages[0].content[0].type"),
        ({"messages": user({"type": "image", "source": {"type": "url", "url": "http://x"}})},
         "messages[0].content[0].source.type"),
        ({"messages": user({"type": "image", "source": {**SOURCE, "data": "AAAA"}})},
         "messages[0].content[0].source.data"),
        ({"messages": user({"type": "tool_result"})}, "messages[0].content[0].tool_use_id"),
        ({"messages": user({"type": "text", "text": "and"},
                           {"type": "tool_result", "tool_use_id": "x", "content": "3"})},
         "messages[0].content[1]"),
        ({"system": [{"type": "image"}]}, "system[0].type"),
        ({"stop_sequences": [1]}, "stop_sequences[0]"),
        ({"thinking": {"type": "maybe"}}, "thinking.type"),
        ({"thinking": {"type": "enabled", "budget_tokens": 0}}, "thinking.budget_tokens"),
        ({"thinking": {"type": "enabled", "budget_tokens": 10**9}}, "thinking.budget_tokens"),
        ({"thinking": {"type": "enabled", "display": "omitted"}}, "thinking.display"),
        ({"thinking": {"type": "enabled", "other": 1}}, "thinking.other"),
        ({"tools": [{"type": "web_search_20250305", "name": "w"}]}, "tools[0].type"),
        ({"tools": [{**TOOL, "name": "a b"}]}, "tools[0].name"),
        ({"tools": [{**TOOL, "input_schema": {"type": 1}}]}, "tools[0].input_schema.type"),
        ({"tools": [{**TOOL, "name": f"f{at}"} for at in range(513)]}, "tools"),
        ({"tool_choice": {"type": "any"}}, "tool_choice.type"),
        ({"tools": [TOOL], "tool_choice": {"type": "tool", "name": "sub"}}, "tool_choice.name"),
    ],
)  # fmt: skip
def test_wrong_field_is_named(change, field):
    with pytest.raises(FieldError) as error:
        read_message_request({**BODY, **change})

    assert error.value.field == field


def test_many_blocks_of_thinking_are_joined_once():
    blocks = [{"type": "thinking", "thinking": "x" * 2_000_000, "signature": ""}]
    blocks += [{"type": "thinking", "thinking": "y", "signature": ""}] * 20_000
    messages = [{"role": "assistant", "content": blocks}]
    start = time.thread_time()

    (message,) = read_message_request({**BODY, "messages": messages}).conversation.messages

    assert message["reasoning_content"] == "x" * 2_000_000 + "y" * 20_000
    assert time.thread_time() - start < 2.5  # 0.05 s; a copy for each block takes 6 s


def streamed(pieces=PIECES):
    events = MessageEvents("msg_1", "m")
    found = [*events.begin(5)]
    for piece in pieces:
        found += events.feed([piece])
    return [*found, *events.end("stop", prompt_tokens=5, cached_tokens=2, tokens=7)]


def test_blocks_of_a_stream_begin_and_end_in_order():
    open_block, indexes = None, []

    for event in streamed():
        if event["type"] == "content_block_start":
            assert open_block is None
            open_block = event["index"]
            indexes.append(open_block)
        elif event["type"] == "content_block_delta":
            assert event["index"] == open_block
        elif event["type"] == "content_block_stop":
            assert event["index"] == open_block
            open_block = None

    assert (open_block, indexes) == (None, [0, 1, 2, 3])


def test_anthropics_package_reads_the_events_and_the_whole_message():
    pytest.importorskip("anthropic", reason="the package anthropic is not installed")
    from anthropic.types import Message, RawMessageStreamEvent
    from pydantic import TypeAdapter

    read, blocks = TypeAdapter(RawMessageStreamEvent), []
    for event in streamed():
        lines = sse(event).decode().split("\n")
        assert lines[0] == f"event: {event['type']}" and lines[2:] == ["", ""]
        parsed = read.validate_json(lines[1].removeprefix("data: "))
        if parsed.type == "content_block_start":
            blocks.append([parsed.content_block.type, ""])
        elif parsed.type == "content_block_delta":
            names = ("text", "thinking", "partial_json", "signature")
            blocks[-1][1] += next(
                getattr(parsed.delta, each) for each in names if hasattr(parsed.delta, each)
            )
        elif parsed.type == "message_delta":
            end = parsed

    counts = {"prompt_tokens": 5, "cached_tokens": 2, "tokens": 7}
    whole = Message.model_validate(message("msg_1", "m", PIECES, "stop", **counts))
    assert blocks == [
        ["thinking", "hmm"],
        ["text", "ab"],
        ["tool_use", '{"a":1}'],
        ["tool_use", "{}"],
    ]
    assert [block.type for block in whole.content] == [kind for kind, _ in blocks]
    assert [block.input for block in whole.content[2:]] == [{"a": 1}, {}]
    assert end.delta.stop_reason == whole.stop_reason == "tool_use"
    assert end.usage.output_tokens == whole.usage.output_tokens == 7


def test_further_texts_may_be_written_between_two_constant_parts():
    events = MessageEvents("msg_1", "m")
    before_it = events.around
    events.feed([Reasoning("hm")])
    within_thoughts = events.around
    events.feed([Content("a")])

    before, behind = events.around
    (expected,) = events.feed([Content('ä "b"')])

    assert before_it is None and within_thoughts is None
    assert before + orjson.dumps('ä "b"') + behind == sse(expected)
    events.feed([CallBegin(0, "call_1", "add")])
    assert events.around is None


@pytest.mark.parametrize(
    "pieces, finish, stop_sequence, reason",
    [
        ([Content("a")], "stop", None, "end_turn"),
        ([Content("a")], "stop", "END", "stop_sequence"),
        ([Content("a")], "length", None, "max_tokens"),
        (PIECES, "stop", None, "tool_use"),
        ([], "stop", None, "end_turn"),
    ],
)
def test_reason_of_the_end(pieces, finish, stop_sequence, reason):
    events = MessageEvents("msg_1", "m")
    last = [*events.feed(pieces), *events.end(finish, stop_sequence=stop_sequence)]

    assert last[-2]["delta"] == {"stop_reason": reason, "stop_sequence": stop_sequence}
    assert message("", "m", pieces, finish, stop_sequence=stop_sequence)["stop_reason"] == reason


def test_errors_have_anthropics_types():
    assert error_document(not_found("no model 'x'")) == {
        "type": "error",
        "error": {"type": "not_found_error", "message": "no model 'x'"},
    }
    assert error_document(CoreError(Kind.INTERNAL, "x"))["error"]["type"] == "api_error"
    assert json.loads(sse(error_document(not_found("x"))).split(b"data: ")[1])["type"] == "error"
