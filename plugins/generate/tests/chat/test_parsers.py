"""A generated text gives the same content and calls, however it is cut into pieces."""

import json
from itertools import pairwise

import pytest
from core_generate.chat import (
    CallBegin,
    Content,
    joined,
    parser_of,
    read_tools,
    without_reasoning,
)
from hypothesis import example, given
from hypothesis import strategies as st

NAMES = ["add", "get-weather", "now"]
TOOLS = read_tools([{"type": "function", "function": {"name": name}} for name in NAMES])


def parsed(template, text, cuts=(), tools=TOOLS, prompt=""):
    ids = iter(range(10_000))
    parser = parser_of(template, tools, prompt=prompt, new_id=lambda: f"id{next(ids)}")
    places = [0, *sorted(min(at, len(text)) for at in cuts), len(text)]
    pieces = [piece for a, b in pairwise(places) for piece in parser.feed(text[a:b])]
    return joined([*pieces, *parser.end()])


def calls_of(whole):
    return [(each.name, json.loads(each.arguments)) for each in whole.calls]


MARKS = ["</tool_call>", '"}]', "[TOOL_CALLS]"]
SHORT = st.text(max_size=3)
ARGUMENTS = st.dictionaries(
    st.text(max_size=6),
    st.recursive(
        st.none()
        | st.booleans()
        | st.integers()
        | st.text(max_size=12)
        | st.sampled_from(["</tool_call>", '"}]']),
        lambda inner: (
            st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=3), inner, max_size=3)
        ),
        max_leaves=6,
    ),
    max_size=3,
)
CALLS = st.lists(st.tuples(st.sampled_from(NAMES), ARGUMENTS), min_size=1, max_size=3)
CUTS = st.lists(st.integers(0, 300), max_size=30)


def hermes(calls):
    objects = [json.dumps({"name": name, "arguments": arguments}) for name, arguments in calls]
    return "\n".join(f"<tool_call>\n{each}\n</tool_call>" for each in objects)


def hermes_list(calls):
    return f"<tool_call>{json.dumps([{'name': n, 'arguments': a} for n, a in calls])}</tool_call>"


def mistral(calls):
    return f"[TOOL_CALLS] {json.dumps([{'arguments': a, 'name': n} for n, a in calls])}"


def mistral_named(calls):
    return "".join(f"[TOOL_CALLS]{n}[ARGS]{json.dumps(a)}" for n, a in calls)


def llama3(calls):
    one = [{"type": "function", "name": n, "parameters": a} for n, a in calls]
    return "; ".join(map(json.dumps, one))


def llama3_tag(calls):
    return f"<|python_tag|>{llama3(calls)}"


def text_arguments(calls):
    one = [{"id": "x", "function": {"name": n, "arguments": json.dumps(a)}} for n, a in calls]
    return "".join(f"<tool_call>{json.dumps(each, ensure_ascii=False)}</tool_call>" for each in one)


FORMS = [
    ("hermes", hermes),
    ("smollm2", hermes_list),
    ("hermes", text_arguments),
    ("mistral", mistral),
    ("mistral", mistral_named),
    ("llama3", llama3),
    ("llama3", llama3_tag),
]


@pytest.mark.parametrize("family, written", FORMS, ids=lambda each: getattr(each, "__name__", each))
@given(calls=CALLS, cuts=CUTS, before=st.sampled_from(["", "Let me see.", "a < b [x]", "1\n\n"]))
def test_calls_of_every_family_are_found_for_any_cut(family, written, calls, cuts, before):
    before = "" if written is llama3 else before
    text = f"{before}{written(calls)}"

    whole = parsed(family, text, cuts)

    assert calls_of(whole) == calls
    assert whole.content == before.rstrip()
    assert parsed(family, text) == whole
    assert parsed(family, text, range(len(text))) == whole


FRAGMENTS = [
    "<tool_call>", "</tool_call>", "<tool", "[TOOL_CALLS]", "[TOOL", "<|python_tag|>", "[ARGS]",
    "<function=add>", "<parameter=a>", "</parameter>", "</function>", '{"name": "add", "arguments": {',
    '"a": 1', "}}", "}", "{", "[", "]", '"', "\\", ",", ";", ":", " ", "\n", "add", "<think>",
    "</think>", "null", '{"name": "add"}', "é",
]  # fmt: skip


@pytest.mark.parametrize(
    "family", ["hermes", "mistral", "llama3", "phi4", "json", "<think> <tool_call>"]
)
@given(parts=st.lists(st.sampled_from(FRAGMENTS), max_size=12), cuts=CUTS)
@example(
    parts=["<tool_call>", '{"name": "add", "arguments": {', "}", " ", "]", "</tool_call>", "add"],
    cuts=[],
)
@example(parts=["<|python_tag|>", "<function=add>"], cuts=[])
@example(parts=["[TOOL_CALLS]", "<function=add>"], cuts=[])
def test_any_text_is_parsed_the_same_for_any_cut(family, parts, cuts):
    text = "".join(parts)

    whole = parsed(family, text)

    assert parsed(family, text, cuts) == whole
    assert parsed(family, text, range(len(text))) == whole


@given(text=st.text(alphabet='ab {}[]<>\n"', max_size=40), cuts=CUTS)
@pytest.mark.parametrize("family", ["hermes", "mistral", "llama3"])
def test_text_without_calls_is_content_to_the_last_character(family, text, cuts):
    assert parsed(family, text, cuts) == (text, "", [])


@pytest.mark.parametrize(
    "text",
    [
        "<tool_call>oops</tool_call> then",
        "<tool_call>\n",
        '<tool_call>{"name": 3}</tool_call>',
        "<tool_",
    ],
)
def test_what_only_looks_like_a_call_is_content(text):
    assert parsed("hermes", text) == (text, "", [])


def test_json_of_an_answer_is_no_call_without_a_marker():
    text = '{"name": "Bob", "arguments": {"age": 3}}'

    assert parsed("llama3", text) == (text, "", [])


def test_call_that_is_cut_off_keeps_what_was_written():
    whole = parsed("hermes", 'Wait. <tool_call>{"name": "add", "arguments": {"a": 12')

    assert whole.content == "Wait."
    assert [(each.name, each.arguments) for each in whole.calls] == [("add", '{"a": 12')]


def test_call_with_a_missing_brace_is_a_call():
    whole = parsed("hermes", '<tool_call>{"name": "add", "arguments": {"a": 1}</tool_call> done')

    assert calls_of(whole) == [("add", {"a": 1})]
    assert whole.content == " done"


def test_call_without_arguments_has_an_empty_object():
    assert calls_of(parsed("hermes", '<tool_call>{"name": "now"}</tool_call>')) == [("now", {})]


def test_tags_of_qwens_coder_become_json_by_the_schema():
    properties = {"n": {"type": "integer"}, "s": {"type": "string"}}
    schema = {"type": "object", "properties": properties}
    tools = read_tools([{"type": "function", "function": {"name": "f", "parameters": schema}}])
    text = (
        "<tool_call>\n<function=f>\n<parameter=n>\n3\n</parameter>\n<parameter=s>\n4\n5\n</parameter>\n"
        "<parameter=x>\nsome text\n</parameter>\n</function>\n</tool_call>"
    )

    whole = parsed("qwen_coder", text, tools=tools)

    assert calls_of(whole) == [("f", {"n": 3, "s": "4\n5", "x": "some text"})]
    assert parsed("qwen_coder", text, range(len(text)), tools=tools) == whole


def test_arguments_arrive_before_the_call_is_complete():
    parser = parser_of("hermes", TOOLS)

    begin, arguments = parser.feed('<tool_call>{"name": "add", "arguments": {"a":')

    assert isinstance(begin, CallBegin)
    assert arguments.text == '{"a":'


def test_content_arrives_at_once_and_only_a_possible_marker_waits():
    parser = parser_of("hermes", TOOLS)

    assert parser.feed("Hello") == [Content("Hello")]
    assert parser.feed(" <tool") == []
    assert parser.feed("box>") == [Content(" <toolbox>")]


def test_a_long_text_that_may_be_a_call_is_not_held_without_bound():
    text = '<tool_call>{"x": "' + "a" * 70_000
    parser = parser_of("hermes", TOOLS)

    pieces = [
        piece for at in range(0, len(text), 1_000) for piece in parser.feed(text[at : at + 1_000])
    ]

    assert len(joined(pieces).content) > 65_000


REQUIRED = read_tools(
    [{"type": "function", "function": {"name": name}} for name in NAMES], "required"
)


@given(calls=CALLS, cuts=CUTS)
def test_list_that_the_structure_forces_is_calls(calls, cuts):
    text = json.dumps([{"name": name, "arguments": arguments} for name, arguments in calls])

    whole = parsed("any template", text, cuts, tools=REQUIRED)

    assert calls_of(whole) == calls
    assert whole.content == ""


@given(arguments=ARGUMENTS, cuts=CUTS)
def test_arguments_that_the_structure_forces_are_one_call(arguments, cuts):
    choice = {"type": "function", "function": {"name": "add"}}
    tools = read_tools([{"type": "function", "function": {"name": "add"}}], choice)

    whole = parsed("any template", json.dumps(arguments), cuts, tools=tools)

    assert calls_of(whole) == [("add", arguments)]


@given(calls=CALLS, cuts=CUTS)
@pytest.mark.parametrize("template, write", FORMS)
def test_calls_behind_the_first_are_dropped_unless_they_may_be_parallel(
    template, write, calls, cuts
):
    tools = read_tools(
        [{"type": "function", "function": {"name": name}} for name in NAMES], parallel=False
    )

    whole = parsed(template, write(calls), cuts, tools=tools)

    assert calls_of(whole) == calls[:1]
    assert whole.content == ""


@given(cuts=CUTS)
@pytest.mark.parametrize("prompt, begin", [("", "\n<think>\n"), ("assistant\n<think>\n", "")])
def test_reasoning_is_apart_from_the_answer_and_its_calls(prompt, begin, cuts):
    text = f"{begin}I add. </thin\n</think>\n\nSo: {hermes([('add', {})])}"

    whole = parsed("<think> <tool_call>", text, cuts, prompt=prompt)

    assert whole.reasoning == "I add. </thin"
    assert whole.content == "So:"
    assert calls_of(whole) == [("add", {})]


@pytest.mark.parametrize("prompt", ["<think>\n", "<think>", "[THINK]", ""])
def test_text_that_must_match_a_structure_is_content(prompt):
    parser = parser_of("<think> [THINK] <tool_call>", TOOLS, prompt=prompt, structured=True)

    assert parser.plain


@pytest.mark.parametrize(
    "prompt, expected",
    [
        ("a<think>\n", "a<think>\n\n</think>\n\n"),
        ("a[THINK]", "a[THINK]\n\n[/THINK]\n\n"),
        ("<think>a</think>\n", "<think>a</think>\n"),
        ("", ""),
    ],
)
def test_reasoning_that_a_prompt_begins_is_closed(prompt, expected):
    assert without_reasoning(prompt) == expected


def test_text_without_tools_is_passed_on_as_it_is():
    parser = parser_of("<tool_call>", None)

    assert parser.plain
    assert parser.feed("<tool_call>") == [Content("<tool_call>")]


@pytest.mark.parametrize(
    "template, text",
    [
        ("… [TOOL_CALLS] …", '[TOOL_CALLS][{"name": "add", "arguments": {}}]'),
        ("… <|python_tag|> …", '{"name": "add", "parameters": {}}'),
        ('<|start_header_id|> {"name": …, "parameters": …}', '{"name": "add", "parameters": {}}'),
        (
            "… <|START_ACTION|> …",
            '<|START_ACTION|>[{"tool_name": "add", "parameters": {}}]<|END_ACTION|>',
        ),
        ("… <TOOLCALL>[ …", '<TOOLCALL>[{"name": "add", "arguments": {}}]</TOOLCALL>'),
        ("… <tool_call> …", '<tool_call>{"name": "add", "arguments": {}}</tool_call>'),
        ("<|im_start|>", '<tool_call>{"name": "add", "arguments": {}}</tool_call>'),
    ],
)
def test_family_is_found_by_the_template(template, text):
    assert calls_of(parsed(template, text)) == [("add", {})]


def test_identifiers_are_as_the_templates_of_a_family_need_them():
    (call,) = joined(parser_of("mistral", TOOLS).feed("[TOOL_CALLS]add{}")).calls

    assert len(call.id) == 9 and call.id.isalnum()
