"""JSON without a marker is a call or an answer: an answer arrives at once, and any cut gives the same."""

import json
from itertools import pairwise

import pytest
from core_generate.chat import (
    CallArguments,
    CallBegin,
    Content,
    joined,
    parser_of,
    read_tools,
    with_answer,
)
from core_generate.chat.calls import MOST_HELD
from core_generate.engine import Structure
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

FUNCTIONS = [{"type": "function", "function": {"name": name}} for name in ("add", "add_all", "now")]
TOOLS = read_tools(FUNCTIONS)
ANSWER = with_answer(TOOLS, Structure(schema=True))
# The same text may be a call for a model of Llama, and for a structure that permits calls and answers.
EITHER = pytest.mark.parametrize("tools", [TOOLS, ANSWER], ids=["llama3", "structure"])


def parsed(tools, text, places=()):
    parser = parser_of("llama3", tools, new_id=lambda: "id")
    borders = [0, *sorted(min(at, len(text)) for at in places), len(text)]
    pieces = [piece for a, b in pairwise(borders) for piece in parser.feed(text[a:b])]
    return joined([*pieces, *parser.end()])


def calls_of(whole):
    return [(each.name, json.loads(each.arguments)) for each in whole.calls]


def shown(tools, text):
    """Return how many characters must come before the first content does; -1 if all waits for the end."""
    parser = parser_of("llama3", tools)
    for number, each in enumerate(text, 1):
        if any(isinstance(piece, Content) for piece in parser.feed(each)):
            return number
    return -1


ANSWERS = [
    '{"name": "add"}',
    '{"name": "add", "age": 3}',
    '{"name": "add", "name": "now", "arguments": {}}',
    '{"name": "Bob", "arguments": {}}',
    '{"name": "addition", "arguments": {}}',
    '{"name": 3, "arguments": {}}',
    '{"name": "add", "arguments": 3}',
    '{"name": "add", "arguments": [1]}',
    '{"name": "add", "arguments": "two"}',
    '{"arguments": {"a": 1}}',
    '{"arguments": {"a": 1}, "title": "add"}',
    '{"title": "add", "arguments": {}}',
    '{"type": "object", "name": "add", "arguments": {}}',
    '{"na\\u006de": "add"}',
    "{}",
    "[]",
    "[1, 2]",
    '["add"]',
    '[{"x": 1}]',
    '{"name": "add"',
]


@EITHER
@pytest.mark.parametrize("text", ANSWERS)
def test_json_that_can_be_no_call_is_content_for_every_cut(tools, text):
    assert parsed(tools, text) == (text, "", [])
    assert parsed(tools, text, range(len(text))) == (text, "", [])
    for at in range(len(text)):
        assert parsed(tools, text, [at]) == (text, "", [])


@EITHER
@pytest.mark.parametrize(
    ("text", "arguments"),
    [
        ('{"name": "add", "arguments": {"a": {"b": [1]}}}', {"a": {"b": [1]}}),
        ('{"arguments": {"a": 1}, "name": "add"}', {"a": 1}),
        ('{"n\\u0061me": "a\\u0064d", "arguments": {}}', {}),
        ('{"name": "add", "arguments": null}', {}),
        ('{"name": "add", "arguments": "{\\"a\\": 1}"}', {"a": 1}),
        ('{"name": "add", "arguments": {}, "more": [1]}', {}),
    ],
)
def test_json_with_the_name_of_a_function_and_arguments_is_a_call_for_every_cut(
    tools, text, arguments
):
    for places in ([], range(len(text)), *([at] for at in range(len(text)))):
        whole = parsed(tools, text, places)

        assert calls_of(whole) == [("add", arguments)]
        assert whole.content == ""


@pytest.mark.parametrize(
    "text",
    [
        '{"type": "function", "name": "add", "parameters": {"a": 1}}',
        '{"type": "function", "id": "x1", "function": {"name": "add", "arguments": {"a": 1}}}',
        '{"function": "add", "parameters": {"a": 1}}',
        '{"tool_name": "add", "parameters": {"a": 1}}',
    ],
)
def test_other_keys_of_calls_are_those_of_models_and_no_structure_permits_them(text):
    assert calls_of(parsed(TOOLS, text)) == [("add", {"a": 1})]
    assert parsed(ANSWER, text) == (text, "", [])


@EITHER
@pytest.mark.parametrize(
    ("text", "at"),
    [
        ('{"sum": 3, "why": "it is so"}', '{"s'),
        ('{"answer": "x"}', '{"an'),
        ('{"name": "Bob", "age": 3}', '{"name": "B'),
        ('{"name": "add", "age": 3}', '{"name": "add", "ag'),
        ("[1, 2, 3]", "[1"),
        ("Hello", "H"),
    ],
)
def test_an_answer_arrives_with_the_first_character_that_no_call_has(tools, text, at):
    assert shown(tools, text) == len(at)


@EITHER
def test_the_arguments_of_a_call_arrive_before_its_end(tools):
    parser = parser_of("llama3", tools)

    assert parser.feed('{"name": "add", "arguments": ') == []
    begin, arguments = parser.feed('{"a":')
    assert isinstance(begin, CallBegin) and begin.name == "add"
    assert arguments == CallArguments(0, '{"a":')


def test_a_call_that_must_come_needs_no_arguments():
    required = read_tools(FUNCTIONS, "required")

    assert calls_of(parsed(required, '[{"name": "now"}]')) == [("now", {})]


def test_an_answer_behind_a_call_is_content():
    call = '{"name": "now", "arguments": {}}'

    for places in ([], range(100)):
        whole = parsed(TOOLS, call + '; {"note": 1}', places)
        assert (calls_of(whole), whole.content) == ([("now", {})], '{"note": 1}')
        for cut in ('{"name": "add"', '{"arguments": {"a": 1}, "na', "{"):
            ended = parsed(TOOLS, f"{call}; {cut}", places)
            assert (calls_of(ended), ended.content) == ([("now", {})], cut)


CUTS = st.lists(st.integers(0, 120), max_size=20)
PARTS = [
    *('{"name": "add"', '"arguments": {', '"a": 1', "}", "}}", "{", "[", "]", '"', "\\", ", ", ": "),
    *(" ", "\n", ";", "add", "add_all", '"name"', '"type": "function"', '"type"', '"function": {'),
    *('"arguments": "{}"', '"arguments": null', '"x": 1', "<|python_tag|>", "<|python", "é", "1"),
]  # fmt: skip


@EITHER
@settings(suppress_health_check=[HealthCheck.too_slow])
@given(parts=st.lists(st.sampled_from(PARTS), max_size=14), cuts=CUTS)
@example(
    parts=['{"name": "add"', ", ", '"arguments": {', "}}", '{"name": "add"', "}", "é"], cuts=[]
)
@example(parts=["{", '"x": 1', "<|python_tag|>", '{"name": "add"', "}", "1"], cuts=[])
@example(
    parts=["[", '{"name": "add"', ", ", '"arguments": null', "}", ", ", '"', "x", "]"], cuts=[]
)
def test_any_text_gives_the_same_for_any_cut(tools, parts, cuts):
    text = "".join(parts)

    whole = parsed(tools, text)

    assert parsed(tools, text, cuts) == whole
    assert parsed(tools, text, range(len(text))) == whole
    if not whole.calls:
        assert whole.content == text or "<|python_tag|>" in text


@EITHER
@pytest.mark.parametrize("size", [MOST_HELD - 20, MOST_HELD, MOST_HELD + 20])
def test_the_bound_of_held_text_does_not_depend_on_the_cuts(tools, size):
    held = '{"arguments": {"a": "' + "<|python_tag|>" + "a" * size
    text = held + '"}, "name": "add"} and more'

    whole = parsed(tools, text)

    assert parsed(tools, text, range(0, len(text), 997)) == whole
    assert parsed(tools, text, [MOST_HELD - 1, MOST_HELD, MOST_HELD + 1]) == whole
