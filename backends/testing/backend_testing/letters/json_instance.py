"""json_instance: creates a small document for a JSON schema."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from core_generate.chat.fields import FieldError, shown
from core_generate.chat.structure import check_schema

from core.errors import invalid

_DEEPEST = 50
_MOST = 1000  # elements and characters


def json_instance(schema: Mapping[str, Any] | bool) -> Any:
    """Return a value for the schema, with required members only and the first of several alternatives.

    It may be invalid if the schema uses keywords such as pattern, or several parts of allOf: they are
    ignored. Raises CoreError(INVALID), which names the field of the schema, for a wrong one, such as a type
    that is no text, and for a document of more than 50 levels.
    """
    check_schema(schema, "schema")
    return _instance({} if schema is True else schema, schema, 0, top=True)


def _instance(schema: Any, root: Any, depth: int, top: bool = False) -> Any:
    if depth > _DEEPEST:
        raise invalid(f"the JSON schema is nested more than {_DEEPEST} deep")
    if schema is True:
        schema = {}
    if not isinstance(schema, Mapping):
        raise invalid(f"the JSON schema has {schema!r} in the place of an object")
    if "const" in schema:
        return schema["const"]
    if schema.get("enum"):
        return schema["enum"][0]
    if "$ref" in schema:
        return _instance(_referred(schema["$ref"], root), root, depth + 1)
    for name in ("anyOf", "oneOf", "allOf"):
        if schema.get(name):
            return _instance(schema[name][0], root, depth + 1)
    kind = schema.get("type", "object" if top or "properties" in schema else "null")
    if isinstance(kind, list):
        kind = kind[0]
    if kind == "object":
        members = schema.get("properties", {})
        return {
            name: _instance(members.get(name, True), root, depth + 1)
            for name in schema.get("required", ())
        }
    if kind == "array":
        count = _count(schema, "minItems", 0)
        return [_instance(schema.get("items", True), root, depth + 1)] * count
    if kind == "string":
        return "a" * _count(schema, "minLength", 1)
    values = {"integer": schema.get("minimum", 0), "number": schema.get("minimum", 0)}
    values |= {"boolean": False, "null": None}
    return values[kind]


def _count(schema: Mapping[str, Any], name: str, default: int) -> int:
    """Return a count of the schema, at most 1000. Raises FieldError if it is no integer of at least 0."""
    found = schema.get(name, default)
    if type(found) is not int or found < 0:
        raise FieldError(f"schema: {name}", f"expected an integer from 0 on, found {shown(found)}")
    return min(found, _MOST)


def _referred(pointer: Any, root: Any) -> Any:
    found = root
    for part in str(pointer).removeprefix("#").split("/")[1:]:
        part = part.replace("~1", "/").replace("~0", "~")
        if not isinstance(found, Mapping) or part not in found:
            raise invalid(f"the JSON schema refers to '{pointer}', which it does not have")
        found = found[part]
    return found
