"""What a generated text must match: `response_format` of a request, and checks of JSON schemas.

The checks bound the work of the engine that compiles a schema. Only the engine knows whether it can.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Iterator, Mapping
from typing import Any

import orjson

from core_generate.chat.fields import (
    FieldError,
    FieldPath,
    check,
    check_choice,
    check_names,
    check_text,
    get,
    join,
    need,
    parse,
    shown,
)
from core_generate.engine import Structure

MOST_DEPTH = 64
MOST_NODES = 10_000  # objects, lists and values of a schema
MOST_CHARACTERS = 65_536  # of a regular expression, or of a grammar
MOST_CHOICES = 1_000  # of MOST_CHARACTERS characters together
MOST_REFERENCE = 4_096  # characters of a $ref

_TYPES = ("array", "boolean", "integer", "null", "number", "object", "string")
# The keywords whose values are schemas, by their form; all other values are data.
_ONE = {"additionalItems", "additionalProperties", "contains", "else", "if", "items", "not"}
_ONE |= {"propertyNames", "then", "unevaluatedItems", "unevaluatedProperties"}
_LISTS = {"allOf", "anyOf", "items", "oneOf", "prefixItems"}
_NAMED = {"$defs", "definitions", "dependentSchemas", "patternProperties", "properties"}


def read_response_format(document: Any, path: str = "response_format") -> Structure | None:
    """Return what `response_format` of OpenAI's chat asks for; None for plain text.

    Raises FieldError (INVALID) with the path of the wrong field.
    """
    if document is None:
        return None
    check(document, dict, path)
    kind = check_choice(
        document.get("type"), ("text", "json_object", "json_schema"), join(path, "type")
    )
    if kind == "json_schema":
        check_names(document, {"type", "json_schema"}, path)
        return read_json_schema(
            need(document, "json_schema", dict, path), join(path, "json_schema")
        )
    check_names(document, {"type"}, path)
    return Structure(schema=True) if kind == "json_object" else None


def read_json_schema(document: Mapping[str, Any], path: str) -> Structure:
    """Return the structure that an object with `name`, `schema`, `strict` and `description` asks for.

    Without `schema`, that is any JSON object. Raises FieldError for a wrong field, and as `check_schema`.
    """
    check_names(document, {"name", "description", "schema", "strict"}, path)
    need(document, "name", str, path)
    get(document, "description", str, path)
    get(document, "strict", bool, path)
    schema = document.get("schema")
    return Structure(schema=True if schema is None else check_schema(schema, join(path, "schema")))


def read_structured_outputs(document: Any, path: str = "structured_outputs") -> Structure | None:
    """Return what vLLM's `structured_outputs` asks for; None if `document` is None.

    It has exactly one of json, json_object, regex, grammar and choice; null and false count as absent. Raises
    FieldError for another number of fields, and for a wrong one.
    """
    if document is None:
        return None
    check(document, dict, path)
    check_names(document, {"json", "json_object", "regex", "grammar", "choice"}, path)
    given = [name for name, value in document.items() if value is not None and value is not False]
    if len(given) != 1:
        raise FieldError(path, f"expected exactly one field, found {shown(given)}")
    name, where = given[0], join(path, given[0])
    value = document[name]
    if name == "json_object":
        return Structure(schema=check(value, bool, where))
    if name == "json":
        return Structure(schema=check_schema(_parsed(value, where), where))
    if name == "choice":
        return Structure(choices=_choices(value, where))
    text = check_text(value, where)
    if not 0 < len(text) <= MOST_CHARACTERS:
        raise FieldError(
            where, f"expected 1 to {MOST_CHARACTERS:,} characters, found {len(text):,}"
        )
    return Structure(regex=text) if name == "regex" else Structure(grammar=text)


def _parsed(value: Any, path: str) -> Any:
    return parse(value, path) if isinstance(value, str) else value


def _choices(value: Any, path: str) -> tuple[str, ...]:
    check(value, list, path)
    if not 0 < len(value) <= MOST_CHOICES:
        raise FieldError(path, f"expected 1 to {MOST_CHOICES:,} texts, found {len(value):,}")
    texts = tuple(check_text(each, f"{path}[{at}]") for at, each in enumerate(value))
    if (size := sum(map(len, texts))) > MOST_CHARACTERS:
        raise FieldError(
            path, f"expected at most {MOST_CHARACTERS:,} characters in all, found {size:,}"
        )
    if "" in texts:
        raise FieldError(path, "a choice is empty; each needs a character")
    return texts


def check_schema(schema: Any, path: str) -> Any:
    """Check a JSON schema, and return it; True for true and {}, which any JSON object matches.

    Raises FieldError for a schema that is too large or too deep, has an unknown type, an empty enum, a
    pattern that is too long or a value of a wrong form, or refers to another document, nothing, or itself.
    """
    if schema is True or schema == {}:
        return True
    check(schema, dict, path)
    _check_size(schema, path)
    for each, where in _every_schema(schema, FieldPath(path)):
        _check_types(each, where)
        _check_pattern(each.get("pattern"), where / "pattern")
        place = where / "patternProperties"
        for pattern in check(each.get("patternProperties", {}), dict, place):
            _check_pattern(pattern, place)
    return schema


def _check_size(schema: Any, path: str) -> None:
    level, nodes = [schema], 0
    for _ in range(MOST_DEPTH):
        nodes += len(level)
        if nodes > MOST_NODES:
            raise FieldError(path, f"the schema has more than {MOST_NODES:,} values; simplify it")
        level = [each for value in level for each in _parts(value)]
        if not level:
            return
    raise FieldError(path, f"the schema is more than {MOST_DEPTH} levels deep; use $defs and $ref")


def _parts(value: Any) -> Iterator[Any]:
    if isinstance(value, dict):
        yield from value.values()
    elif isinstance(value, list):
        yield from value


def _every_schema(root: Any, path: FieldPath) -> Iterator[tuple[dict[str, Any], FieldPath]]:
    """Yield the schema, all schemas in it and all that references name, once each, with their paths.

    Whatever a reference names is a schema, also where it would be data otherwise.
    Raises FieldError as `_schemas` and `_referred`.
    """
    seen: set[int] = set()  # ids of schemas
    followed: set[str] = set()  # references
    waiting = [(root, path)]
    while waiting:
        for each, where in _schemas(*waiting.pop(), seen):
            yield each, where
            if "$ref" in each:
                place = where / "$ref"
                waiting += [
                    (found, place) for found in _referred(root, each["$ref"], place, followed)
                ]


def _schemas(
    schema: Any, path: FieldPath, seen: set[int]
) -> Iterator[tuple[dict[str, Any], FieldPath]]:
    """Yield the schema and all schemas in it, each with its path; none for a schema that is true or false.

    seen   ids of schemas, which are left out with all that is in them; each one that is yielded joins them
    Raises FieldError where the form needs a schema, and the value is none.
    """
    if isinstance(schema, bool) or id(schema) in seen:
        return
    check(schema, dict, path)
    seen.add(id(schema))
    yield schema, path
    for name, value in schema.items():
        where = path / name
        if name in _LISTS and isinstance(value, list):
            for at, each in enumerate(value):
                yield from _schemas(each, where / at, seen)
        elif name in _ONE:
            yield from _schemas(value, where, seen)
        elif name in _NAMED:
            for key, each in check(value, dict, where).items():
                yield from _schemas(each, where / key, seen)
        elif name in _LISTS:
            check(value, list, where)


def _check_types(schema: Mapping[str, Any], path: FieldPath) -> None:
    types = schema.get("type", "object")
    if types == []:
        raise FieldError(path / "type", "the list is empty; nothing would match")
    for each in types if isinstance(types, list) else [types]:
        check_choice(each, _TYPES, path / "type")
    required = schema.get("required", [])
    for at, each in enumerate(check(required, list, path / "required")):
        check_text(each, path / "required" / at)
    if "enum" in schema and not check(schema["enum"], list, path / "enum"):
        raise FieldError(path / "enum", "the list is empty; nothing would match")


def _check_pattern(pattern: Any, path: FieldPath) -> None:
    if pattern is None:
        return
    if len(check_text(pattern, path)) > MOST_CHARACTERS:
        raise FieldError(path, f"longer than {MOST_CHARACTERS:,} characters")


def _referred(root: Any, reference: Any, path: FieldPath, followed: set[str]) -> list[Any]:
    """Follow a reference, and those to which it leads, until a schema is found. Return what they name.

    followed   references that lead to a schema, which are not followed again; these join them
    Raises FieldError if they lead to something that is no schema, to nothing, or in a circle.
    """
    seen: dict[str, Any] = {}
    while (text := check_text(reference, path)) not in followed:
        if text in seen:
            raise FieldError(path, f"{shown(text)} leads back to itself")
        seen[text] = found = resolve(root, text, path)
        if not isinstance(found, dict) or "$ref" not in found:
            if not isinstance(found, bool):
                check(found, dict, path)
            break
        reference = found["$ref"]
    followed.update(seen)
    return list(seen.values())


def resolve(root: Any, reference: str, path: str | FieldPath) -> Any:
    """Return the part of the schema `root` that a reference such as #/$defs/name names.

    Raises FieldError for a reference to another document, to a part that does not exist, or of more than
    MOST_REFERENCE characters.
    """
    if reference != "#" and not reference.startswith("#/"):
        raise FieldError(path, f"expected a reference within the schema, found {shown(reference)}")
    if len(reference) > MOST_REFERENCE:
        raise FieldError(
            path, f"expected at most {MOST_REFERENCE:,} characters, found {len(reference):,}"
        )
    found = root
    for step in reference.split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(found, list) and name.isdecimal() and int(name[:9]) < len(found):
            found = found[int(name[:9])]
        elif isinstance(found, dict) and name in found:
            found = found[name]
        else:
            raise FieldError(path, f"the schema has nothing at {shown(reference)}")
    return found


def with_references_below(schema: Any, place: str) -> tuple[Any, bool]:
    """Return a copy of a checked schema for use within another one, and whether the schema has references.

    place   where the copy will be in the other schema, such as #/$defs/name; each reference in the copy
            begins with it
    """
    schemas = [each for each, _ in _every_schema(schema, FieldPath("schema"))]
    referring = {id(each) for each in schemas if "$ref" in each}
    return (_moved(schema, referring, place), True) if referring else (schema, False)


def _moved(value: Any, referring: set[int], place: str) -> Any:
    """Return a copy of a part of a schema.

    referring   ids of the schemas with references, before which `place` comes
    """
    if isinstance(value, list):
        return [_moved(each, referring, place) for each in value]
    if not isinstance(value, dict):
        return value
    copy = {name: _moved(each, referring, place) for name, each in value.items()}
    if id(value) in referring:
        copy["$ref"] = f"{place}{value['$ref'][1:]}"
    return copy


def mismatch(structure: Structure, text: str) -> str:
    """Return how a text differs from a structure, "" if it matches. For tests: needs the package jsonschema.

    Raises ValueError for a grammar, whose form only the engine knows.
    """
    if structure.grammar:
        raise ValueError("only the engine can compare a text with a grammar")
    if structure.choices:
        return "" if text in structure.choices else f"{shown(text)} is none of the choices"
    if structure.regex:
        matches = re.fullmatch(structure.regex, text)
        return "" if matches else f"{shown(text)} does not match {structure.regex}"
    try:
        document = orjson.loads(text)
    except ValueError as error:
        return f"{shown(text)} is not JSON: {error}"
    if structure.schema is True:
        return "" if isinstance(document, dict) else f"{shown(text)} is not an object"
    jsonschema = importlib.import_module("jsonschema")  # only tests need it

    errors = jsonschema.Draft202012Validator(structure.schema).iter_errors(document)
    return "; ".join(f"{each.json_path}: {each.message}" for each in errors)
