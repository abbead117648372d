"""The table of routes ─► [document] ─► an OpenAPI 3.1 description."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from http import HTTPStatus
from typing import Any, Protocol

import core
from frontends.http.codec.limits import JSON_SIZE
from frontends.http.openapi.operations import ITSELF, OPERATIONS, Operation, binary_text
from frontends.http.openapi.schemas import SCHEMAS, ref

# What the patterns of the router are made of, beside plain text.
_OPTIONAL = re.compile(r"\(\?:((?:[^()]|\(\?P<\w+>[^()]*\))*)\)\?")
_NAMED = re.compile(r"\(\?P<(\w+)>([^()]*)\)")

_PARAMETERS = {
    "model": "Name of a model, percent signs and all as they are.",
    "version": "Number of a version; without it the newest that is ready.",
    "region": "Name of a region of shared memory.",
    "repository": "Not supported: 501.",
}
_ANSWER_OF_ALL = (400, 403, 405)


class Route(Protocol):
    """One row of the router's table."""

    @property
    def methods(self) -> frozenset[str]: ...
    @property
    def path(self) -> re.Pattern[str]: ...
    @property
    def category(self) -> str: ...
    @property
    def service(self) -> Any: ...


def describe(
    routes: Iterable[Route], operations: Mapping[Any, Mapping[str, Operation]] = OPERATIONS
) -> dict[str, Any]:
    """The description of all routes. A service that `operations` does not have is the description's own."""
    paths: dict[str, dict[str, Any]] = {}
    for route in routes:
        for path in templates(route.path.pattern):
            entry: dict[str, Any] = paths.setdefault(path, {})
            if names := re.findall(r"\{(\w+)\}", path):
                entry["parameters"] = [_parameter(name, route.path.pattern) for name in names]
            for method in sorted(route.methods):
                operation = operations.get(route.service, ITSELF)[method]
                entry[method.lower()] = _operation(operation, route, method, path)
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "core",
            "version": core.__version__,
            "description": "The KServe v2 protocol with Triton's extensions.",
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "paths": paths,
        "components": {"schemas": SCHEMAS},
        "tags": [{"name": name} for name in sorted({route.category for route in routes})],
    }


def templates(pattern: str) -> list[str]:
    """The paths that a pattern of the router stands for, with {names}."""
    if (found := _OPTIONAL.search(pattern)) is not None:
        before, after = pattern[: found.start()], pattern[found.end() :]
        return templates(before + after) + templates(before + found[1] + after)
    for found in _NAMED.finditer(pattern):
        before, after = pattern[: found.start()], pattern[found.end() :]
        if re.fullmatch(r"[\w|]+", found[2]):  # one of some words
            return [
                path for word in found[2].split("|") for path in templates(before + word + after)
            ]
    plain = _NAMED.sub(r"{\1}", pattern)
    return [re.sub(r"\\(.)", r"\1", plain)]


def _parameter(name: str, pattern: str) -> dict[str, Any]:
    form = next(found[2] for found in _NAMED.finditer(pattern) if found[1] == name)
    return {
        "name": name,
        "in": "path",
        "required": True,
        "description": _PARAMETERS[name],
        "schema": {"type": "string", "pattern": f"^{form}$"},
    }


def _operation(operation: Operation, route: Route, method: str, path: str) -> dict[str, Any]:
    found: dict[str, Any] = {
        "operationId": _identifier(method, path),
        "summary": operation.summary,
        "tags": [route.category],
    }
    if operation.binary:
        found["parameters"] = [
            {
                "name": JSON_SIZE,
                "in": "header",
                "description": "Bytes of JSON at the start of a binary body.",
                "schema": {"type": "integer", "minimum": 0, "maximum": 2**31 - 1},
            }
        ]
    if operation.takes:
        found["requestBody"] = {
            "required": operation.takes.startswith(("Infer", "Generate")),
            "content": _content(operation.takes, operation.binary),
        }
    statuses = sorted({*operation.statuses, *_ANSWER_OF_ALL})
    found["responses"] = {"200": _answer(operation)} | {
        str(status): {
            "description": HTTPStatus(status).phrase,
            "content": {"application/json": {"schema": ref("Error")}},
        }
        for status in statuses
    }
    return found


def _answer(operation: Operation) -> dict[str, Any]:
    if not operation.gives:
        return {"description": "OK, without a body"}
    if operation.events:
        text = (
            f"An event for each response: `data: ` and the JSON of {operation.gives}, or of Error."
        )
        return {
            "description": text,
            "content": {"text/event-stream": {"schema": {"type": "string"}}},
        }
    found: dict[str, Any] = {
        "description": "OK",
        "content": _content(operation.gives, operation.binary),
    }
    if operation.binary:
        found["headers"] = {
            JSON_SIZE: {
                "description": "Bytes of JSON at the start of a binary body.",
                "schema": {"type": "integer", "minimum": 0},
            }
        }
    return found


def _content(schema: str, binary: bool) -> dict[str, Any]:
    found: dict[str, Any] = {"application/json": {"schema": ref(schema)}}
    if binary:
        found["application/octet-stream"] = {"schema": {"description": binary_text()}}
    return found


def _identifier(method: str, path: str) -> str:
    """`postV2ModelsModelInfer`, of POST /v2/models/{model}/infer."""
    words = re.findall(r"\w+", path)
    return method.lower() + "".join(word[0].upper() + word[1:] for word in words)
