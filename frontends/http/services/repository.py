"""The model repository extension: index, load, unload."""

from __future__ import annotations

import base64
import binascii
from typing import Any

from core.config import MOST_JSON_BYTES, config_too_large
from core.errors import CoreError, invalid, unsupported
from core.server import InferenceServer
from core.tensor import Buffer
from frontends.http.background import begin
from frontends.http.codec.json_text import (
    MEMBERS,
    Elements,
    read_control,
    read_json,
)
from frontends.http.codec.parameters import typed
from frontends.http.index_members import IndexMembers
from frontends.http.message import HttpRequest, HttpResponse
from frontends.http.names import name_to_load
from frontends.http.services.metadata import json_answer
from frontends.shared.v2 import check_entries

_PIECE = 256 * 1024  # characters of base64, whole groups of four


async def index(server: InferenceServer, call: HttpRequest) -> HttpResponse:
    """Return all models with their versions; with {"ready": true} as body, only those that serve.

    Plugins may add members to the entries (IndexMembers).
    A repository in the path is ignored. Raises CoreError(INVALID) for a malformed body.
    """
    document = _object(read_control(call.body) if len(call.body) else {})
    ready = document.get("ready", False)
    if type(ready) is not bool:
        raise invalid("Invalid value for 'ready': expected a boolean")
    entries = await server.control.repository.index(ready)
    return json_answer(await IndexMembers.of(server).complete(entries))


async def load(server: InferenceServer, call: HttpRequest) -> HttpResponse:
    """Load or reload the model in the path, with the parameters in the body; return when it is ready.

    Raises CoreError(UNSUPPORTED) if the path names a repository.
    """
    _refuse_repository(call)
    parameters = await begin(_load_parameters, call.body) if len(call.body) else {}
    name = await _named(server, call)
    await server.control.repository.load(name, parameters)
    return HttpResponse()


async def unload(server: InferenceServer, call: HttpRequest) -> HttpResponse:
    """Unload the model in the path and the ensembles that need it; return when no version is ready any more.

    The parameter `unload_dependents` of the body says whether to unload the models of an ensemble, too.
    Raises CoreError(UNSUPPORTED) if the path names a repository.
    """
    _refuse_repository(call)
    document = read_control(call.body) if len(call.body) else {}
    dependents = _parameters(document).get("unload_dependents", False)
    if type(dependents) is not bool:
        raise typed("unload_dependents", "boolean")
    name = await _named(server, call)
    await server.control.repository.unload(name, dependents)
    return HttpResponse()


async def _named(server: InferenceServer, call: HttpRequest) -> str:
    """Return the name of the model to load or unload. The request gets it, for the access log."""
    name = await name_to_load(server, call.model)
    call.captures = {**call.captures, "model": name}
    return name


def _refuse_repository(call: HttpRequest) -> None:
    if call.captures["repository"] is not None:
        raise unsupported("'repository_name' specification is not supported")


def _object(document: Any) -> dict[str, Any]:
    """Return a JSON object; other JSON counts as an empty object, as in Triton."""
    return document if type(document) is dict else {}


def _parameters(document: Any) -> dict[str, Any]:
    parameters = _object(document).get("parameters", {})
    if type(parameters) is not dict:
        raise invalid("Unable to parse 'parameters': attempt to get members for non-object")
    return parameters


def _load_parameters(body: Buffer) -> dict[str, Any]:
    """Return the parameters in the body of a load: `config` as text, `file:…` as bytes, from base64.

    Thread-safe. Raises CoreError(INVALID) for other parameters, and for values that are not of that form.
    """
    parameters = _parameters(read_json(body, MEMBERS))
    check_entries("parameters", parameters)
    return {key: _load_parameter(key, value) for key, value in parameters.items()}


def _load_parameter(key: str, value: Any) -> str | bytes:
    if key != "config" and not key.startswith("file:"):
        raise _unexpected(key)
    is_long = type(value) is Elements and not value.is_array
    if type(value) is not str and not is_long:
        raise typed(key, "string")
    if key == "config":
        return _config(value)
    try:
        return _decoded(value.characters() if is_long else value.encode())
    except (binascii.Error, ValueError):
        raise invalid(f"load parameter '{key}' must be the file's bytes in base64") from None


def _config(value: str | Elements) -> str:
    if isinstance(value, str):
        return value
    if value.text_bytes > MOST_JSON_BYTES:
        raise config_too_large("load parameter 'config'", value.text_bytes)
    return str(value.characters(), "utf-8")


def _decoded(text: bytes) -> bytes:
    """Decode base64, in pieces so that other threads can run. Raises ValueError for malformed text."""
    if text.find(b"=") < len(text) - 2 and b"=" in text:
        raise ValueError("something follows the end")
    pieces = (text[at : at + _PIECE] for at in range(0, len(text), _PIECE))
    return b"".join([base64.b64decode(piece, validate=True) for piece in pieces])


def _unexpected(key: str) -> CoreError:
    return invalid(
        f"unexpected load parameter '{key}': only 'config' and 'file:<version>/<file name>' are known"
    )
