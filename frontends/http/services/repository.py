"""The model repository extension: index, load, unload."""

from __future__ import annotations

import base64
import binascii
from typing import Any

from core.errors import CoreError, invalid, unsupported
from core.server import Server
from frontends.http.codec.json_text import read_json
from frontends.http.codec.parameters import typed
from frontends.http.message import Answer, Call
from frontends.http.services.metadata import json_answer


async def index(server: Server, call: Call) -> Answer:
    """Every model with its versions; with `ready` in the body only those that serve."""
    document = _document(call)
    ready = document.get("ready", False)
    if type(ready) is not bool:
        raise invalid("Invalid value for 'ready': expected a boolean")
    return json_answer(await server.management.index(ready))


async def load(server: Server, call: Call) -> Answer:
    """Load or reload; answers when the model is ready."""
    _refuse_repository(call)
    await server.management.load(call.model, _load_parameters(_parameters(call)))
    return Answer()


async def unload(server: Server, call: Call) -> Answer:
    """Unload; answers when no version is ready any more."""
    _refuse_repository(call)
    dependents = _parameters(call).get("unload_dependents", False)
    if type(dependents) is not bool:
        raise typed("unload_dependents", "boolean")
    await server.management.unload(call.model, dependents)
    return Answer()


def _refuse_repository(call: Call) -> None:
    if call.captures["repository"] is not None:
        raise unsupported("'repository_name' specification is not supported")


def _document(call: Call) -> dict[str, Any]:
    """The JSON object of the body; an empty body and other JSON say nothing, as in Triton."""
    if not len(call.body):
        return {}
    document = read_json(call.body)
    return document if type(document) is dict else {}


def _parameters(call: Call) -> dict[str, Any]:
    parameters = _document(call).get("parameters", {})
    if type(parameters) is not dict:
        raise invalid("Unable to parse 'parameters': attempt to get members for non-object")
    return parameters


def _load_parameters(parameters: dict[str, Any]) -> dict[str, Any]:
    """`config` as text and `file:…` as bytes."""
    return {key: _load_parameter(key, value) for key, value in parameters.items()}


def _load_parameter(key: str, value: Any) -> str | bytes:
    if key != "config" and not key.startswith("file:"):
        raise _unexpected(key)
    if type(value) is not str:
        raise typed(key, "string")
    if key == "config":
        return value
    try:
        return base64.b64decode(value, validate=True)
    except (binascii.Error, ValueError):
        raise invalid(f"load parameter '{key}' must be the file's bytes in base64") from None


def _unexpected(key: str) -> CoreError:
    return invalid(
        f"unexpected load parameter '{key}': only 'config' and 'file:<version>/<file name>' are known"
    )
