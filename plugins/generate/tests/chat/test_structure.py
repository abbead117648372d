"""A response format becomes a structure within bounds, or is refused by the path of the wrong field."""

import tracemalloc
from itertools import pairwise

import pytest
from core_generate.chat import FieldError, read_response_format, read_structured_outputs
from core_generate.chat.structure import resolve
from core_generate.engine import Structure
from hypothesis import given
from hypothesis import strategies as st


def json_schema(schema):
    return {"type": "json_schema", "json_schema": {"name": "x", "strict": True, "schema": schema}}


def nested(depth):
    schema = {"type": "object"}
    for _ in range(depth):
        schema = {"properties": {"a": schema}}
    return schema


SCHEMA = {
    "type": "object",
    "properties": {"a": {"$ref": "#/$defs/b"}},
    "$defs": {"b": {"type": ["null", "string"]}},
}


@pytest.mark.parametrize(
    "document, structure",
    [
        (None, None),
        ({"type": "text"}, None),
        ({"type": "json_object"}, Structure(schema=True)),
        (json_schema(SCHEMA), Structure(schema=SCHEMA)),
        (json_schema({}), Structure(schema=True)),
        (json_schema(nested(30)), Structure(schema=nested(30))),
        ({"type": "json_schema", "json_schema": {"name": "x"}}, Structure(schema=True)),
    ],
)
def test_format_becomes_a_structure(document, structure):
    assert read_response_format(document) == structure


PLACE = "response_format.json_schema.schema"


@pytest.mark.parametrize(
    "document, field",
    [
        ("json", "response_format"),
        ({}, "response_format.type"),
        ({"type": "xml"}, "response_format.type"),
        ({"type": "text", "json_schema": {}}, "response_format.json_schema"),
        ({"type": "json_schema"}, "response_format.json_schema"),
        (
            {"type": "json_schema", "json_schema": {"schema": {}}},
            "response_format.json_schema.name",
        ),
        (json_schema([]), PLACE),
        (json_schema(False), PLACE),
        (json_schema(nested(64)), PLACE),
        (json_schema({"enum": list(range(10_000))}), PLACE),
        (json_schema({"enum": []}), f"{PLACE}.enum"),
        (json_schema({"type": []}), f"{PLACE}.type"),
        (json_schema({"type": "colour"}), f"{PLACE}.type"),
        (json_schema({"properties": {"a": 3}}), f"{PLACE}.properties.a"),
        (json_schema({"properties": []}), f"{PLACE}.properties"),
        (json_schema({"anyOf": {}}), f"{PLACE}.anyOf"),
        (json_schema({"anyOf": [{"required": 3}]}), f"{PLACE}.anyOf[0].required"),
        (json_schema({"items": {"pattern": 3}}), f"{PLACE}.items.pattern"),
        (json_schema({"patternProperties": 3}), f"{PLACE}.patternProperties"),
        (json_schema({"patternProperties": ["a"]}), f"{PLACE}.patternProperties"),
        (
            json_schema({"patternProperties": {"a" * 70_000: {}}}),
            f"{PLACE}.patternProperties",
        ),
        (
            json_schema({"$ref": "#/a", "a": {"patternProperties": 3}}),
            f"{PLACE}.$ref.patternProperties",
        ),
        (json_schema({"pattern": "a" * 70_000}), f"{PLACE}.pattern"),
        (json_schema({"$ref": "#"}), f"{PLACE}.$ref"),
        (
            json_schema({"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}}),
            f"{PLACE}.$ref",
        ),
        (json_schema({"$ref": "#/$defs/none"}), f"{PLACE}.$ref"),
        (json_schema({"$ref": "file:///etc/passwd"}), f"{PLACE}.$ref"),
        (json_schema({"$ref": "#/" + "a" * 5_000, "a" * 5_000: {}}), f"{PLACE}.$ref"),
        (
            json_schema({"$ref": "#/const", "const": {"properties": 3}}),
            f"{PLACE}.$ref.properties",
        ),
        (
            json_schema({"$ref": "#/a", "a": {"anyOf": [{"$ref": "#/b"}]}, "b": {"type": "x"}}),
            f"{PLACE}.$ref.anyOf[0].$ref.type",
        ),
    ],
)
def test_wrong_format_is_refused_by_its_field(document, field):
    with pytest.raises(FieldError) as error:
        read_response_format(document)

    assert error.value.field == field


def test_a_name_of_a_property_is_no_keyword():
    schema = {
        "properties": {"$ref": {"type": "string"}, "type": {"const": {"$ref": 3, "type": "colour"}}}
    }

    assert read_response_format(json_schema(schema)).schema == schema


def test_a_schema_may_refer_to_a_place_that_is_no_keyword():
    schema = {"$ref": "#/components/a", "components": {"a": {"items": {"$ref": "#/components/a"}}}}

    assert read_response_format(json_schema(schema)).schema == schema


def test_a_long_chain_of_references_is_followed_once(monkeypatch):
    names = [str(at) for at in range(4000)]
    chain = {name: {"$ref": f"#/$defs/{after}"} for name, after in pairwise(names)}
    calls = []

    def counted(*given):
        calls.append(given)
        return resolve(*given)

    monkeypatch.setattr("core_generate.chat.structure.resolve", counted)

    read_response_format(json_schema({"$ref": "#/$defs/0", "$defs": {**chain, names[-1]: {}}}))

    assert len(calls) == len(names)


def referring_below(name):
    """Return a schema with many references below a long name."""
    keys = [str(at) for at in range(3300)]
    below = {key: {"$ref": f"#/b/{key}"} for key in keys}
    return {"properties": {name: {"properties": below}}, "b": {key: {} for key in keys}}


def chained(name):
    """Return a schema with a long chain of references, each below a long name; many schemas end it."""
    steps = {str(at): {"properties": {name: {"$ref": f"#/a/{at + 1}"}}} for at in range(1500)}
    end = {"properties": {str(at): {} for at in range(3500)}}
    return {"$ref": "#/a/0", "a": {**steps, "1500": end}}


@pytest.mark.parametrize("schema", [referring_below("x" * 20_000), chained("x" * 1000)])
def test_the_memory_for_a_check_does_not_grow_with_paths(schema):
    tracemalloc.start()
    try:
        read_response_format(json_schema(schema))
        _, most = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()

    assert most < 4e6


def test_a_long_path_is_cut_in_an_error():
    schema = chained("x" * 1000)
    schema["a"]["1500"]["properties"]["last"] = {"type": "colour"}

    with pytest.raises(FieldError) as error:
        read_response_format(json_schema(schema))

    assert error.value.field.startswith(f"{PLACE}.$ref.properties.{'x' * 100}….$ref.properties.x")
    assert error.value.field.endswith(f"{'x' * 100}….$ref.properties.last.type")
    assert len(str(error.value)) < 1000


@pytest.mark.parametrize(
    "document, structure",
    [
        ({"json": '{"type": "object"}'}, Structure(schema={"type": "object"})),
        ({"json": {"type": "array"}, "regex": None}, Structure(schema={"type": "array"})),
        ({"json_object": True}, Structure(schema=True)),
        ({"regex": "a+"}, Structure(regex="a+")),
        ({"grammar": "root ::= x"}, Structure(grammar="root ::= x")),
        ({"choice": ["a", "b"]}, Structure(choices=("a", "b"))),
    ],
)
def test_vllms_form_becomes_a_structure(document, structure):
    assert read_structured_outputs(document) == structure


@pytest.mark.parametrize(
    "document, field",
    [
        ({}, "structured_outputs"),
        ({"regex": "a", "json_object": True}, "structured_outputs"),
        ({"json": "{"}, "structured_outputs.json"),
        ({"regex": ""}, "structured_outputs.regex"),
        ({"choice": []}, "structured_outputs.choice"),
        ({"choice": ["a", 1]}, "structured_outputs.choice[1]"),
        ({"choice": [""]}, "structured_outputs.choice"),
        ({"choice": ["a" * 40_000, "b" * 40_000]}, "structured_outputs.choice"),
        ({"lark": "a"}, "structured_outputs.lark"),
    ],
)
def test_wrong_field_of_vllms_form_is_named(document, field):
    with pytest.raises(FieldError) as error:
        read_structured_outputs(document)

    assert error.value.field == field


KEYWORDS = [
    "type",
    "properties",
    "items",
    "anyOf",
    "$ref",
    "$defs",
    "enum",
    "pattern",
    "required",
    "not",
]
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.text(max_size=3)
    | st.sampled_from(["#", "#/$defs/a", "object"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from([*KEYWORDS, "a"]), inner, max_size=4)
    ),
)


@given(JSON)
def test_any_json_is_a_schema_or_refused(document):
    try:
        read_response_format(json_schema(document))
    except FieldError as error:
        assert error.field.startswith(PLACE)
