"""json_instance: creates a small document for a JSON schema."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from core_generate import StructureRefused
from core_generate.chat.fields import FieldError, shown
from core_generate.chat.structure import check_schema, resolve

from core.errors import invalid

_DEEPEST = 50
_MOST = 1000  # elements and characters
_LARGEST = (
    100_000  # values, characters and references of a document; they take tenths of a second at most
)


def json_instance(schema: Mapping[str, Any] | bool) -> Any:
    """Return a value for the schema, with required members only and the first of several alternatives.

    It may be invalid if the schema uses keywords such as pattern, or several parts of allOf: they are
    ignored. Raises CoreError(INVALID), which names the field of the schema, for a wrong one, such as a type
    that is no text, for a document of more than 50 levels, and for a large one.
    """
    check_schema(schema, "schema")
    return _Instance(schema).of({} if schema is True else schema, 0, top=True)


class _Instance:
    """Creates the values of one document, and counts what they take.

    root   the schema, in which references are looked up
    """

    def __init__(self, root: Any):
        self._root = root
        self._size = 0

    def of(self, schema: Any, depth: int, top: bool = False) -> Any:
        """Return a value for a part of the schema."""
        self._add(1)
        if depth > _DEEPEST:
            raise StructureRefused(f"the JSON schema is nested more than {_DEEPEST} deep")
        if schema is True:
            schema = {}
        if not isinstance(schema, Mapping):
            raise invalid(f"the JSON schema has {schema!r} in the place of an object")
        if "const" in schema:
            return self._copied(schema["const"])
        if schema.get("enum"):
            return self._copied(schema["enum"][0])
        if "$ref" in schema:
            pointer = str(schema["$ref"])
            self._add(len(pointer))
            return self.of(resolve(self._root, pointer, "schema"), depth + 1)
        for name in ("anyOf", "oneOf", "allOf"):
            if schema.get(name):
                return self.of(schema[name][0], depth + 1)
        kind = schema.get("type", "object" if top or "properties" in schema else "null")
        return self._of_kind(kind[0] if isinstance(kind, list) else kind, schema, depth)

    def _of_kind(self, kind: str, schema: Mapping[str, Any], depth: int) -> Any:
        if kind == "object":
            return self._object(schema, depth)
        if kind == "array":
            return self._array(schema, depth)
        if kind == "string":
            count = _count(schema, "minLength", 1)
            self._add(count)
            return "a" * count
        if kind in ("integer", "number"):
            return self._copied(schema.get("minimum", 0))
        return False if kind == "boolean" else None

    def _object(self, schema: Mapping[str, Any], depth: int) -> dict[str, Any]:
        members, found = schema.get("properties", {}), {}
        for name in schema.get("required", ()):
            self._add(len(name))
            found[name] = self.of(members.get(name, True), depth + 1)
        return found

    def _array(self, schema: Mapping[str, Any], depth: int) -> list[Any]:
        count = _count(schema, "minItems", 0)
        if not count:
            return []
        before = self._size
        item = self.of(schema.get("items", True), depth + 1)
        self._add((count - 1) * (self._size - before))
        return [item] * count

    def _copied(self, value: Any) -> Any:
        """Return a value of the schema."""
        self._add(len(json.dumps(value)))
        return value

    def _add(self, size: int) -> None:
        self._size += size
        if self._size > _LARGEST:
            raise FieldError(
                "schema",
                f"its smallest document has more than {_LARGEST:,} values and characters; ask for fewer "
                "members and items",
            )


def _count(schema: Mapping[str, Any], name: str, default: int) -> int:
    """Return a count of the schema, at most 1000. Raises FieldError if it is no integer of at least 0."""
    found = schema.get(name, default)
    is_count = type(found) is int or (type(found) is float and found.is_integer())
    if not is_count or found < 0:
        raise FieldError("schema", f"{name} is {shown(found)}, expected an integer from 0 on")
    return int(min(found, _MOST))
