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
    """Return the named parts of a path, with the model's name decoded if only the decoded name is known.

    category   of the route. With "model-repository", which loads and unloads, names in the repositories are
               known, too; with others only models that the server has
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
