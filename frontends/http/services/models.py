"""GET /v2/models: the models that should serve, with their inputs and outputs."""

from __future__ import annotations

from itertools import groupby
from typing import Any

from core.errors import CoreError
from core.server import InferenceServer
from frontends.http.message import HttpRequest, HttpResponse
from frontends.http.services.metadata import json_answer

_UNLOADED = "unloaded"  # reason of a version that was unloaded by request


async def models(server: InferenceServer, call: HttpRequest) -> HttpResponse:
    """Return the models that serve, load or failed to load: state, versions, inputs and outputs."""
    return json_answer({"models": await listed(server)})


async def listed(server: InferenceServer) -> list[dict[str, Any]]:
    """Return an entry for each model that has a state, in the order of the repository index.

    A model with a version that serves is READY; its entry has these versions and, unless several models share
    the name, platform, inputs and outputs. Other models have the state of their newest version and its
    reason; they are left out if an operator has unloaded that version.
    """
    entries = []
    index = await server.control.repository.index()
    for (name, space), group in groupby(index, lambda each: (each["name"], each.get("namespace"))):
        versions = list(group)
        entry = {"name": name} if space is None else {"name": name, "namespace": space}
        ready = [each["version"] for each in versions if each.get("state") == "READY"]
        last = {key: value for key, value in versions[-1].items() if key in ("state", "reason")}
        if ready:
            described = _described(server, name)
            entries.append({**entry, "state": "READY", "versions": ready, **described})
        elif last and last.get("reason") != _UNLOADED:
            entries.append({**entry, **last, "versions": []})
    return entries


def _described(server: InferenceServer, name: str) -> dict[str, Any]:
    """Return a model's platform, inputs and outputs; {} if no model serves by that name, or several do."""
    try:
        found = server.models.metadata(name)
    except CoreError:
        return {}
    return {key: found[key] for key in ("platform", "inputs", "outputs")}
