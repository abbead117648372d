"""What of a JSON schema is refused because xgrammar would ignore it."""

import json

import pytest
from backend_openvino_genai.schema import check_schema
from core_generate import Prompt, Sampling, Structure
from core_testing.engines.events import Events
from tiny_model import write_tiny_model

from core.errors import CoreError, Kind


@pytest.mark.parametrize(
    ("schema", "what"),
    [
        ({"type": "integer", "multipleOf": 7}, "'multipleOf'"),
        ({"type": "array", "uniqueItems": True}, "'uniqueItems'"),
        ({"if": {}, "then": {}}, "'if'"),
        ({"type": "number", "minimum": 1}, "'minimum' for the type number"),
        ({"type": ["number", "null"], "maximum": 1}, "'maximum' for the type number"),
        ({"maximum": 1}, "'maximum' without 'type'"),
        ({"type": "string", "pattern": "a", "maxLength": 2}, "'pattern' beside 'maxLength'"),
        ({"type": "string", "format": "date", "minLength": 2}, "'format' beside 'minLength'"),
        ({"type": "object", "anyOf": [{}]}, "'anyOf' beside 'type'"),
        ({"$ref": "#/$defs/a", "maximum": 2, "$defs": {"a": {}}}, "'\\$ref' beside 'maximum'"),
        ({"allOf": [{"type": "integer"}, {"type": "null"}]}, "'allOf' with several schemas"),
        ({"type": "object", "required": ["a"]}, "the required property 'a'"),
        (
            {"properties": {"a": {}}, "patternProperties": {"b": {}}},
            "'patternProperties' beside 'properties'",
        ),
        ({"type": "array", "items": {"not": {}}}, "'not'"),
        ({"anyOf": [{"type": "null"}, {"not": {}}]}, "'not'"),
        ({"$defs": {"a": {"not": {}}}}, "'not'"),
    ],
)
def test_what_would_be_ignored_is_refused(schema, what):
    with pytest.raises(CoreError, match=f"the JSON schema has {what}.*, which this") as caught:
        check_schema(schema)

    assert caught.value.kind is Kind.INVALID


def test_a_schema_that_is_too_deep_is_refused():
    schema = {}
    for _ in range(1000):
        schema = {"type": "array", "items": schema}

    with pytest.raises(CoreError, match="nested more than 128 times"):
        check_schema(schema)


KEPT = [
    ({"type": "integer", "minimum": 10, "exclusiveMaximum": 12}, lambda value: 10 <= value < 12),
    ({"type": "string", "pattern": "^[xyz]{3}$"}, lambda value: len(value) == 3),
    ({"enum": ["not", 1, None]}, lambda value: value in ("not", 1, None)),
    (
        {"anyOf": [{"type": "boolean"}, {"const": 5}], "title": "a"},
        lambda value: value in (0, 1, 5),
    ),
    ({"$ref": "#/$defs/some"}, lambda value: type(value) is bool),
    (
        {"type": "array", "prefixItems": [{"const": 1}], "items": {"const": 2}, "maxItems": 3},
        lambda value: value[:1] == [1] and set(value[1:]) <= {2},
    ),
]


@pytest.fixture(scope="module")
def tiny(tmp_path_factory):
    """Return an engine of random weights: it keeps nothing but what it must."""
    pytest.importorskip("openvino_genai", reason="OpenVINO GenAI runs the model")
    from backend_openvino_genai.engine import GenAiEngine
    from backend_openvino_genai.settings import Settings

    path = tmp_path_factory.mktemp("tiny") / "model.gguf"
    write_tiny_model(path)
    engine = GenAiEngine(path, Settings(context=256, threads=1))
    yield engine
    engine.close()


@pytest.mark.parametrize(("schema", "holds"), KEPT, ids=range(len(KEPT)))
def test_what_is_accepted_is_kept_by_random_weights(tiny, schema, holds):
    whole = {
        "type": "object",
        "properties": {"v": schema},
        "required": ["v"],
        "additionalProperties": False,
        "$defs": {"some": {"type": "boolean"}},
    }
    texts = []
    for seed in range(6):
        events = Events()
        sampling = Sampling(structure=Structure(schema=whole), temperature=1.0, seed=seed)
        tiny.generate(Prompt("ab"), sampling, events)
        found = events.all()
        if found[-1].finish == "stop":  # not cut off by the context, within white space
            texts.append("".join(event.text for event in found))

    assert texts
    for text in texts:
        assert holds(json.loads(text)["v"]), text
