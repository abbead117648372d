"""What xgrammar would leave out of a JSON schema: the text would not have to match it.

JSON schema ─► [check_schema] ─► structure

xgrammar refuses few keywords. It ignores others, or reads them only where no other keyword is beside them.
The rules below were found with version 2026.4 of OpenVINO GenAI: a model of random weights finds the gaps.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from core_generate import StructureRefused

from core.errors import CoreError

MOST_DEPTH = 128
IGNORED = (
    *("not", "if", "then", "else", "contains", "minContains", "maxContains", "uniqueItems"),
    *("dependentRequired", "dependentSchemas", "dependencies", "multipleOf", "$dynamicRef"),
)
_BOUNDS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
_LENGTHS = ("minLength", "maxLength")
_TYPED = (*_BOUNDS, *_LENGTHS, "pattern", "format")
# Each is read alone: other conditions beside it are ignored.
_ALONE = ("$ref", "anyOf", "oneOf", "allOf")
_NO_CONDITIONS = frozenset(
    {
        *("title", "description", "default", "examples", "deprecated", "readOnly", "writeOnly"),
        *("$schema", "$id", "$anchor", "$comment", "$defs", "definitions", "discriminator"),
    }
)
_OF_NAMES = ("properties", "patternProperties", "$defs", "definitions")
_OF_MANY = ("anyOf", "oneOf", "allOf", "prefixItems")
_OF_ONE = (
    *("items", "additionalProperties", "unevaluatedProperties", "unevaluatedItems"),
    "propertyNames",
)


def check_schema(schema: Any, depth: int = 0) -> None:
    """Raise CoreError(INVALID) for a condition that the text would not have to match, in any part."""
    if depth > MOST_DEPTH:
        raise StructureRefused(f"the JSON schema is nested more than {MOST_DEPTH} times")
    if not isinstance(schema, dict):
        return
    for each in IGNORED:
        if each in schema:
            raise _refused(f"'{each}'")
    _check_alone(schema)
    _check_values(schema)
    _check_properties(schema)
    for part in _parts(schema):
        check_schema(part, depth + 1)


def _check_alone(schema: Mapping[str, Any]) -> None:
    for each in _ALONE:
        if each in schema and (
            others := [key for key in schema if key not in {each, *_NO_CONDITIONS}]
        ):
            raise _refused(f"'{each}' beside '{others[0]}'")
    if isinstance(schema.get("allOf"), list) and len(schema["allOf"]) > 1:
        raise _refused("'allOf' with several schemas")


def _check_values(schema: Mapping[str, Any]) -> None:
    types = schema.get("type")
    numbers = types == "number" or (isinstance(types, list) and "number" in types)
    for each in _TYPED:
        if each in schema and types is None:
            raise _refused(f"'{each}' without 'type'")
        if each in schema and numbers and each in _BOUNDS:
            raise _refused(f"'{each}' for the type number")
    strict = [each for each in ("pattern", "format", "minLength", "maxLength") if each in schema]
    if len(strict) > 1 and strict[0] in ("pattern", "format"):
        raise _refused(f"'{strict[0]}' beside '{strict[1]}'")


def _check_properties(schema: Mapping[str, Any]) -> None:
    properties = schema.get("properties")
    for each in ("patternProperties", "propertyNames"):
        if each in schema and properties:
            raise _refused(f"'{each}' beside 'properties'")
    known = properties if isinstance(properties, dict) else {}
    required = schema.get("required")
    if isinstance(required, list) and (unknown := [each for each in required if each not in known]):
        raise _refused(f"the required property '{unknown[0]}', which 'properties' lacks")


def _parts(schema: Mapping[str, Any]) -> Iterator[Any]:
    """Yield the schemas inside a schema. Names of properties are no keywords."""
    for name in _OF_ONE:
        yield schema.get(name)
    for name in _OF_MANY:
        yield from schema[name] if isinstance(schema.get(name), list) else ()
    for name in _OF_NAMES:
        yield from schema[name].values() if isinstance(schema.get(name), dict) else ()


def _refused(what: str) -> CoreError:
    return StructureRefused(
        f"the JSON schema has {what}, which this engine would ignore; leave it out, and check the text "
        "for it yourself"
    )
