"""The description of the HTTP routes, as OpenAPI 3.1.

table of the router ─┬─► [description] ─► /openapi.json
openapi.json ────────┘

The table has paths, methods and categories, the table of control operations their summaries and arguments.
openapi.json beside this file has the rest: bodies of the protocol's routes, path parameters, and schemas.
"""

from __future__ import annotations

import re
from functools import lru_cache
from importlib import resources
from typing import Any

import orjson

import core
from core.control import OPERATIONS
from frontends.http.route import Route
from frontends.http.route_templates import forms, templates
from frontends.shared.json_operations import JsonForm, json_form

_ERRORS = ("400", "401", "403", "404", "405", "429", "500", "501", "503")


@lru_cache(maxsize=8)
def description(table: tuple[Route, ...]) -> bytes:
    """Return the OpenAPI document of a table of routes, with the version of this server, as JSON text."""
    document = orjson.loads(resources.files(__package__).joinpath("openapi.json").read_bytes())
    bodies, words = document.pop("bodies"), document.pop("path_parameters")
    document["info"]["version"] = core.__version__
    document["tags"] = [{"name": each} for each in sorted({route.category for route in table})]
    parameters = document["components"]["parameters"]
    for route in table:
        paths = templates(route.path.pattern)
        for name, form in forms(route.path.pattern).items():
            if f"{{{name}}}" in paths[-1]:  # it has all optional parts
                parameters[name] = _path_parameter(name, words.get(name, f"The {name}."), form)
        for path in paths:
            names = re.findall(r"\{(\w+)\}", path)
            entry = document["paths"].setdefault(path, _path_entry(names))
            for method in sorted(route.methods):
                entry[method.lower()] = {
                    "operationId": _operation_id(method, path),
                    "summary": _summary(route),
                    "tags": [route.category],
                    **_exchanged(route, method, bodies.get(f"{method} {paths[0]}", {})),
                }
    return orjson.dumps(document)


def _path_parameter(name: str, words: str, form: str) -> dict[str, Any]:
    schema = {"type": "string", "pattern": f"^{form}$"}
    return {"name": name, "in": "path", "required": True, "description": words, "schema": schema}


def _path_entry(names: list[str]) -> dict[str, Any]:
    found = [{"$ref": f"#/components/parameters/{name}"} for name in names]
    return {"parameters": found} if found else {}


def _operation_id(method: str, path: str) -> str:
    """Return the operationId of a route: getV2ModelsModelReady for GET /v2/models/{model}/ready."""
    words = re.findall(r"\w+", path)
    return method.lower() + "".join(word[0].upper() + word[1:] for word in words)


def _summary(route: Route) -> str:
    """Return the summary of the route's control operation.

    Without one, return the first line of its service's docstring, up to " Raises ".
    """
    operation = OPERATIONS.get(route.operation)
    found = operation.summary if operation is not None else (route.service.__doc__ or "")
    return found.partition("\n")[0].partition(" Raises ")[0]


def _exchanged(route: Route, method: str, body: dict[str, Any]) -> dict[str, Any]:
    """Return the part of an OpenAPI operation that describes request and responses of a route and a method.

    body   entry of openapi.json for method and path, or {}; all of its `more` is in the result
    """
    if route.is_generic and (form := json_form(OPERATIONS[route.operation])) is not None:
        found, answer = _generic(form, method)
    else:
        found, answer = _of_protocol(body, route.category == "inference")
    errors = (*_ERRORS, "504") if route.category == "inference" else _ERRORS
    done = {"description": "OK" if answer else "OK, without a body", **answer}
    responses = {"200": done, **{each: _ref("responses", "Error") for each in errors}}
    more = body.get("more", {})
    return {**found, **more, "responses": {**responses, **more.get("responses", {})}}


def _of_protocol(body: dict[str, Any], required: bool) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return (OpenAPI of the request, OpenAPI of the response) for a route of the protocol.

    required   whether the request must have a body
    Each is {} if `body` does not have it.
    """
    asked, answer = body.get("request"), body.get("response")
    found = {"requestBody": {"required": required, **_content(asked)}} if asked else {}
    return found, _content(answer) if answer else {}


def _generic(form: JsonForm, method: str) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return (OpenAPI of the request, OpenAPI of the response) for a control operation with a generic route.

    method   with GET, the arguments are in the query; with POST, in the body
    """
    answer = _json(
        {"type": "object", "properties": {"result": form.result}, "required": ["result"]}
    )
    if method == "GET":
        asked = [
            {"name": name, "in": "query", "required": name in form.required, "schema": schema}
            for name, schema in form.arguments.items()
        ]
        return {"parameters": asked}, answer
    schema = {
        "type": "object",
        "properties": form.arguments,
        "required": form.required,
        "additionalProperties": False,
    }
    return {"requestBody": {"required": bool(form.required), **_json(schema)}}, answer


def _content(schema: str) -> dict[str, Any]:
    return _json(_ref("schemas", schema))


def _json(schema: dict[str, Any]) -> dict[str, Any]:
    return {"content": {"application/json": {"schema": schema}}}


def _ref(kind: str, name: str) -> dict[str, Any]:
    return {"$ref": f"#/components/{kind}/{name}"}
