"""Names of models in paths, which clients may percent-encode.

If no model has the name as received, the name is decoded once. So both spellings of a name reach the same
model, through the same route, with the same restrictions and roles.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import unquote

from core.errors import internal
from core.server import InferenceServer


def with_model(
    server: InferenceServer, captures: Mapping[str, Any], category: str
) -> Mapping[str, Any]:
    """Return the named parts of a path, with the model's name decoded if the server has only that model.

    category   of the route. With "model-repository", which loads and unloads, the name stays as received:
               the service calls `name_to_load`
    """
    name: str | None = captures.get("model")
    if name is None or "%" not in name or category == "model-repository":
        return captures
    found = as_known(name, server.models.knows)
    return captures if found == name else {**captures, "model": found}


async def name_to_load(server: InferenceServer, name: str) -> str:
    """Return the name of a model to load or unload, decoded once if only the decoded name is known.

    Names in the repositories are known, too. A thread lists them, but not if the server refuses such requests
    anyway. Raises CoreError for a repository that cannot be read.
    """
    if "%" not in name or server.options.model_control_mode != "explicit":
        return name
    try:
        listed = await server.manager.listed()
    except OSError as error:
        raise internal(f"failed to read the model repository: {error}") from error
    return as_known(name, lambda each: each in listed or server.models.knows(each))


def as_known(name: str, known: Callable[[str], bool]) -> str:
    """Return the name, percent-decoded once if only the decoded name is known; else unchanged.

    known   (name) → whether it is known
    """
    if known(name):
        return name
    try:
        plain = unquote(name, errors="strict")
    except UnicodeDecodeError:
        return name
    return plain if known(plain) else name
