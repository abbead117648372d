"""Tools and the choice among them become a structure that engines can hold the text to."""

import json

import pytest
from core_generate.chat import FieldError, joined, mismatch, parser_of, read_tools, with_answer
from core_generate.chat.structure import check_schema
from core_generate.engine import Structure

pytest.importorskip("jsonschema", reason="schemas are compared with texts by jsonschema")


def tool(name, parameters=None, **more):
    function = {"name": name, **more}
    if parameters is not None:
        function["parameters"] = parameters
    return {"type": "function", "function": function}


ADD = tool(
    "add",
    {"type": "object", "properties": {"a": {"type": "integer"}}, "required": ["a"]},
    strict=True,
)
TREE = tool(
    "tree",
    {
        "type": "object",
        "properties": {"root": {"$ref": "#/$defs/node"}},
        "required": ["root"],
        "$defs": {"node": {"type": "object", "properties": {"next": {"$ref": "#/$defs/node"}}}},
    },
)
NOW = tool("now", description="the time")


def text(*calls):
    return json.dumps([{"name": name, "arguments": arguments} for name, arguments in calls])


def test_the_model_decides_unless_the_request_does():
    assert read_tools(None).choice == "none"
    assert read_tools([ADD]).choice == "auto"
    assert read_tools([ADD], "auto").structure is None
    assert read_tools([ADD], "none").functions == ()
    assert read_tools([ADD, NOW]).names == {"add", "now"}


def test_required_is_a_list_of_calls():
    structure = read_tools([ADD, TREE, NOW], "required").structure

    good = text(("add", {"a": 1}), ("tree", {"root": {"next": {"next": {}}}}), ("now", {}))
    assert mismatch(structure, good) == ""
    for bad in (
        "[]",
        text(("add", {})),
        text(("sub", {"a": 1})),
        text(("tree", {"root": {"next": 3}})),
        text(("now", {"a": 1})),
    ):
        assert mismatch(structure, bad)


def test_calls_that_are_not_parallel_are_one():
    structure = read_tools([ADD], "required", parallel=False).structure

    assert mismatch(structure, text(("add", {"a": 1}))) == ""
    assert mismatch(structure, text(("add", {"a": 1}), ("add", {"a": 2})))


ANSWER = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "child": {"$ref": "#"}},
    "required": ["name"],
    "additionalProperties": False,
}
ANSWERS = ['{"name": "Bob"}', '{"name": "Bob", "child": {"name": "Ann"}}', '{"name": "addition"}']


@pytest.mark.parametrize("parallel", [True, False])
def test_an_answer_with_a_schema_leaves_calls_possible(parallel):
    tools = with_answer(read_tools([ADD, TREE], parallel=parallel), Structure(schema=ANSWER))

    one = [("add", {"a": 1})]
    two = [*one, ("tree", {"root": {"next": {}}})]
    for each in (text(*one), text(*two[1:]), text(*one)[1:-1], *ANSWERS):
        assert mismatch(tools.structure, each) == ""
    assert (mismatch(tools.structure, text(*two)) == "") is parallel
    for each in ("[]", "{}", text(("add", {})), '{"name": "Bob", "child": 1}', '"Bob"'):
        assert mismatch(tools.structure, each)


def test_an_answer_that_is_any_object_leaves_calls_possible():
    tools = with_answer(read_tools([ADD]), Structure(schema=True))

    for each in (text(("add", {"a": 1})), "{}", '{"b": [1]}'):
        assert mismatch(tools.structure, each) == ""
    assert mismatch(tools.structure, "1")


@pytest.mark.parametrize("cut", [1, 5, 1000])
def test_calls_beside_an_answer_are_calls_and_an_answer_is_content(cut):
    tools = with_answer(read_tools([ADD, TREE]), Structure(schema=ANSWER))

    def parsed(whole):
        parser = parser_of("<think> <tool_call>", tools, prompt="<think>", structured=True)
        parts = [whole[at : at + cut] for at in range(0, len(whole), cut)]
        found = joined([piece for each in parts for piece in parser.feed(each)] + parser.end())
        assert found.reasoning == ""
        return found.content, [(each.name, json.loads(each.arguments)) for each in found.calls]

    calls = [("add", {"a": 1}), ("tree", {"root": {}})]
    assert parsed(text(*calls)) == ("", calls)
    assert parsed(text(*calls[:1])[1:-1]) == ("", calls[:1])
    for each in ANSWERS:
        assert parsed(each) == (each, [])


@pytest.mark.parametrize("choice", ["required", {"type": "function", "function": {"name": "add"}}])
def test_calls_have_identifiers_that_the_template_of_the_model_takes_back(choice):
    tools = read_tools([ADD], choice)
    written = text(("add", {"a": 1})) if choice == "required" else '{"a": 1}'

    for template, length in (("[TOOL_CALLS]", 9), ("hermes", 29)):
        parser = parser_of(template, tools)
        (call,) = joined([*parser.feed(written), *parser.end()]).calls
        assert len(call.id) == length


def test_references_to_places_that_are_no_keywords_are_kept_in_a_list_of_calls():
    trees = tool(
        "trees",
        {
            "type": "object",
            "properties": {"x": {"$ref": "#/components/a"}},
            "components": {"a": {"type": "array", "items": {"$ref": "#/components/a"}}},
            "additionalProperties": {"const": {"$ref": "#/no/reference"}},
        },
    )
    structure = read_tools([trees], "required").structure

    assert mismatch(structure, text(("trees", {"x": [[], [[]]]}))) == ""
    assert mismatch(structure, text(("trees", {"y": {"$ref": "#/no/reference"}}))) == ""
    assert mismatch(structure, text(("trees", {"x": [[1]]})))
    check_schema(structure.schema, "whole")  # its references lead to schemas


def test_named_function_is_its_arguments():
    tools = read_tools([ADD, TREE], {"type": "function", "function": {"name": "tree"}})

    assert (tools.choice, tools.name, tools.names) == ("named", "tree", {"tree"})
    assert mismatch(tools.structure, '{"root": {"next": {}}}') == ""
    assert mismatch(tools.structure, '{"root": 1}')


def test_allowed_tools_are_a_part_of_all():
    allowed = {"mode": "required", "tools": [{"type": "function", "function": {"name": "now"}}]}
    tools = read_tools([ADD, NOW], {"type": "allowed_tools", "allowed_tools": allowed})

    assert (tools.choice, tools.names) == ("required", {"now"})


@pytest.mark.parametrize(
    "tools, choice, field",
    [
        ({}, None, "tools"),
        ([1], None, "tools[0]"),
        ([{"type": "web_search"}], None, "tools[0].type"),
        ([{"type": "function"}], None, "tools[0].function"),
        ([tool("a b")], None, "tools[0].function.name"),
        ([tool("")], None, "tools[0].function.name"),
        ([tool(3)], None, "tools[0].function.name"),
        ([ADD, ADD], None, "tools[1]"),
        ([tool("a", {"type": "string"})], None, "tools[0].function.parameters.type"),
        ([tool("a", {"properties": {"b": {"type": "colour"}}})], None,
         "tools[0].function.parameters.properties.b.type"),
        ([tool("a", {"$ref": "http://x/y"})], None, "tools[0].function.parameters.$ref"),
        ([tool("a", colour=1)], None, "tools[0].function.colour"),
        ([tool(f"f{at}") for at in range(513)], None, "tools"),
        ([ADD], {"type": "allowed_tools", "allowed_tools": {"mode": "auto", "tools": [ADD] * 513}},
         "tool_choice.allowed_tools.tools"),
        (None, "required", "tool_choice"),
        ([ADD], "always", "tool_choice"),
        ([ADD], 3, "tool_choice"),
        ([ADD], {"type": "custom"}, "tool_choice.type"),
        ([ADD], {"type": "function"}, "tool_choice.function"),
        ([ADD], {"type": "function", "function": {"name": "sub"}}, "tool_choice.function.name"),
        (None, {"type": "function", "function": {"name": "sub"}}, "tool_choice.function.name"),
    ],
)  # fmt: skip
def test_wrong_field_is_named(tools, choice, field):
    with pytest.raises(FieldError) as error:
        read_tools(tools, choice)

    assert error.value.field == field


def test_structure_of_choices_and_patterns_is_compared_too():
    assert mismatch(Structure(choices=("a", "b")), "a") == ""
    assert mismatch(Structure(choices=("a", "b")), "c")
    assert mismatch(Structure(regex="a+"), "aa") == ""
    assert mismatch(Structure(regex="a+"), "aab")
    assert mismatch(Structure(schema=True), "{}") == ""
    assert mismatch(Structure(schema=True), "[]")
