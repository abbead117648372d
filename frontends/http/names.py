"""Names of models in paths, which clients may percent-encode.

If no model has the name as received, the name is decoded once. So both spellings of a name reach the same
model, through the same route, with the same restrictions and roles.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any
from urllib.parse import unquote

from core.server import InferenceServer


def with_model(
    server: InferenceServer, captures: Mapping[str, Any], category: str
) -> Mapping[str, Any]:
    """Return the named parts of a path, with the name of the model as the server knows it.

    category   of the route: a name in a request to load is also looked for in the repositories
    Raises CoreError for a repository that cannot be read.
    """
    name: str | None = captures.get("model")
    if name is None or "%" not in name:
        return captures
    found = None
    if category == "model-repository":
        listed = {entry["name"] for entry in server.manager.index()}
        found = as_known(name, lambda each: each in listed or server.models.knows(each))
    else:
        found = as_known(name, server.models.knows)
    return captures if found == name else {**captures, "model": found}


def as_known(name: str, known: Callable[[str], bool]) -> str:
    """Return a name unchanged if it is known, else decoded once if that is known, else unchanged."""
    if known(name):
        return name
    try:
        plain = unquote(name, errors="strict")
    except UnicodeDecodeError:
        return name
    return plain if known(plain) else name
