"""White space in texts that follow a JSON schema, as LLGuidance reads it."""

import json

import pytest
from core_generate.guidance import guidance_schema

SCHEMA = {
    "type": "object",
    "properties": {"a": {"type": "integer"}, "b": {"type": "array", "items": {"type": "null"}}},
    "required": ["a", "b"],
    "additionalProperties": False,
}


@pytest.fixture(scope="module")
def taken():
    """Return a function: how many characters of a text match a schema."""
    llguidance = pytest.importorskip("llguidance")
    tokenizer = llguidance.LLTokenizer("byte")

    def taken(schema, text, **options):
        found = json.dumps(guidance_schema(schema, **options))
        grammar = llguidance.LLMatcher.grammar_from_json_schema(found)
        matcher = llguidance.LLMatcher(tokenizer, grammar, log_level=0)
        assert not matcher.is_error(), matcher.get_error()
        return matcher.try_consume_tokens(tokenizer.tokenize_str(text))

    return taken


VALUE = {"a": 1, "b": [None, None]}


@pytest.mark.parametrize(
    "text",
    [
        json.dumps(VALUE),
        json.dumps(VALUE, separators=(",", ":")),
        json.dumps(VALUE, indent=2),
        json.dumps(VALUE, indent="\t"),
        json.dumps(VALUE, indent=8).replace("\n", "\r\n"),
    ],
)
def test_every_usual_form_of_json_is_accepted(taken, text):
    assert taken(SCHEMA, text) == len(text)


@pytest.mark.parametrize("space", ["  ", "\n\n", " \n", "\n" + " " * 33, "\t\t"])
def test_more_white_space_is_not(taken, space):
    assert taken(SCHEMA, "{" + space + '"a":1') < 1 + len(space)


def test_one_line_has_a_blank_behind_each_separator(taken):
    line = json.dumps(VALUE)

    assert taken(SCHEMA, line, one_line=True) == len(line)
    for other in ('{\n"a"', '{ "a"', '{"a":1', '{"a" :'):
        assert taken(SCHEMA, other, one_line=True) < len(other)


def test_any_object_is_bounded_too(taken):
    assert taken(True, '{"x":\n\n1}') < 9


@pytest.mark.parametrize(
    "options", [{"whitespace_flexible": True}, {"whitespace_pattern": r"[ ]{0,3}"}, "wrong"]
)
def test_a_schema_with_its_own_white_space_keeps_it(options):
    schema = {**SCHEMA, "x-guidance": options}
    assert guidance_schema(schema) == schema


def test_other_options_of_a_schema_stay(taken):
    schema = {**SCHEMA, "x-guidance": {"lenient": True}}

    assert guidance_schema(schema)["x-guidance"]["lenient"] is True
    assert taken(schema, '{\n\n"a": 1') < 3
