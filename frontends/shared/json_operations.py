"""Control operations that clients call with JSON: their selection, arguments and results.

Operation ─► [json_form] ─► an endpoint of each frontend: arguments ─► [call] ─► {"result": …}

An operation has such an endpoint if JSON can represent its arguments and its result, unless it is internal or
the protocol has another endpoint for it.
"""

from __future__ import annotations

import inspect
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints
from urllib.parse import parse_qsl

import orjson

from core.control import Area, Changed, Operation
from core.errors import CoreError, invalid

Schema = Mapping[str, Any]  # a JSON schema

_SCALARS = {str: "string", int: "integer", float: "number", bool: "boolean", NoneType: "null"}
_PYTHON = {kind: (each,) for each, kind in _SCALARS.items()} | {"number": (float, int)}


@dataclass(frozen=True)
class JsonForm:
    """The JSON schemas of the arguments and of the result of a control operation; {} permits any value."""

    arguments: Mapping[str, Schema]  # by name
    required: Sequence[str]  # names of the arguments without a default
    result: Schema


@cache
def json_form(operation: Operation) -> JsonForm | None:
    """Return the JSON form of an operation, from the annotations of its function.

    Return None if JSON cannot represent an argument or the result, or if an annotation is missing.
    """
    parameters = list(inspect.signature(operation.body).parameters.values())[1:]
    try:
        types = get_type_hints(operation.body)
        arguments = {each.name: _schema(types[each.name]) for each in parameters}
        opaque = operation.encode is not None or types["return"] is Changed
        result = {} if opaque else _schema(types["return"])
    except (KeyError, NameError, TypeError):  # annotation is missing, unknown, or not JSON
        return None
    required = [each.name for each in parameters if each.default is each.empty]
    return JsonForm(arguments, required, result)


def offered(areas: Iterable[Area | type[Area]], served: Collection[str]) -> tuple[Operation, ...]:
    """Return the operations of `areas` that get a JSON endpoint: all with a JSON form that are not internal.

    served   names of the operations that are left out, since the protocol has another endpoint for them
    """
    return tuple(
        each
        for area in areas
        for each in area.operations
        if each.name not in served and not each.internal and json_form(each) is not None
    )


async def call(areas: Mapping[str, Area], operation: Operation, arguments: Any) -> bytes:
    """Call an operation, await its result if it is awaitable, and return `{"result": …}` as JSON text.

    areas       name → area of the server's control operations
    arguments   a decoded JSON value, which must be an object: name → value
    Raises CoreError(INVALID) for missing, unknown or mistyped arguments, and the errors of the operation.
    """
    _check(operation, arguments)
    area = areas[operation.name.removesuffix(f".{operation.method}")]
    result = getattr(area, operation.method)(**arguments)
    if inspect.isawaitable(result):
        result = await result
    if operation.encode is not None:
        result = operation.encode(result)
    return orjson.dumps({"result": result})


def of_query(operation: Operation, query: str) -> dict[str, Any]:
    """Return name → value of the arguments in the query of a URL, for `call`, which checks them.

    A value stays text if the argument is unknown or may be a string; else it is read as JSON. Raises
    CoreError(INVALID) for a value that is not JSON, and for a repeated argument.
    """
    found: dict[str, Any] = {}
    for name, text in parse_qsl(query, keep_blank_values=True):
        if name in found:
            raise _wrong(operation, f"has the argument '{name}' once, not twice")
        form = json_form(operation)
        schema = form.arguments.get(name, {}) if form is not None else {}
        try:
            found[name] = text if _holds(schema, text) else orjson.loads(text)
        except orjson.JSONDecodeError:
            raise _mistyped(operation, name, schema, "text") from None
    return found


def _check(operation: Operation, arguments: Any) -> None:
    form = json_form(operation)
    assert form is not None
    if type(arguments) is not dict:
        raise _wrong(operation, "takes its arguments as a JSON object")
    for name, value in arguments.items():
        if (schema := form.arguments.get(name)) is None:
            raise _wrong(operation, f"has no argument '{name}'")
        if not _holds(schema, value):
            raise _mistyped(operation, name, schema, _kind(value))
    for name in form.required:
        if name not in arguments:
            raise _wrong(operation, f"needs the argument '{name}'")


def _mistyped(operation: Operation, name: str, schema: Schema, found: str) -> CoreError:
    return _wrong(operation, f"needs {_words(schema)} as the argument '{name}', not {found}")


def _wrong(operation: Operation, what: str) -> CoreError:
    form = json_form(operation)
    assert form is not None
    known = [
        f"{name} ({_words(schema)}{'' if name in form.required else ', optional'})"
        for name, schema in form.arguments.items()
    ]
    return invalid(
        f"control operation '{operation.name}' {what}; its arguments: {', '.join(known) or 'none'}"
    )


def _schema(annotation: Any) -> Schema:
    """Return the JSON schema of a type annotation. Raises TypeError if JSON cannot represent the type."""
    origin, inner = get_origin(annotation), get_args(annotation)
    if annotation is Any:
        return {}
    if annotation in _SCALARS:
        return {"type": _SCALARS[annotation]}
    if origin in (Union, UnionType):
        return {"anyOf": [_schema(each) for each in inner]}
    if origin in (list, Sequence):
        return {"type": "array", "items": _schema(inner[0])}
    if origin in (dict, Mapping) and inner[0] is str:
        return {"type": "object", "additionalProperties": _schema(inner[1])}
    raise TypeError(f"JSON cannot hold {annotation}")


def _holds(schema: Schema, value: Any) -> bool:
    """Return whether a JSON value fits a schema from `_schema`."""
    if (choices := schema.get("anyOf")) is not None:
        return any(_holds(each, value) for each in choices)
    kind = schema.get("type")
    if kind == "array":
        return type(value) is list and all(_holds(schema["items"], each) for each in value)
    if kind == "object":
        inner = schema["additionalProperties"]
        return type(value) is dict and all(_holds(inner, each) for each in value.values())
    return kind is None or type(value) in _PYTHON[kind]


def _kind(value: Any) -> str:
    return _SCALARS.get(type(value), "array" if type(value) is list else "object")


def _words(schema: Schema) -> str:
    choices = schema.get("anyOf", [schema])
    return " or ".join(each.get("type", "any value") for each in choices)
