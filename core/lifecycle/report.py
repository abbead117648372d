"""Report: contents of the index, the startup table and the readiness check."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from core.lifecycle.managed import ManagedModel
from core.lifecycle.version import UNLOADED, ModelVersion
from core.repository.catalog import DUPLICATE
from core.repository.names import name_of, namespace_of


def index(
    holders: Mapping[str, int], models: Mapping[str, ManagedModel], ready_only: bool
) -> list[dict[str, Any]]:
    """Return the entries of the repository index, sorted by name and version.

    holders   name → number of repositories that hold the model
    A model that came with a load request is listed until all its versions are unloaded.
    """
    active = {name for name, model in models.items() if any(map(_active, model.versions.values()))}
    entries = []
    for name in sorted({*holders, *active}):
        model = models.get(name)
        named = named_entry(name_of(name), namespace_of(name))
        if holders.get(name, 0) > 1 and name not in active:
            entries.append({**named, "state": "UNAVAILABLE", "reason": DUPLICATE})
        elif model is not None and model.versions:
            for number in sorted(model.versions):
                entries.append({**named, **_entry(model.versions[number])})
        elif model is not None and model.error:
            entries.append({**named, "state": "UNAVAILABLE", "reason": model.error})
        else:
            entries.append(named)
    return [entry for entry in entries if not ready_only or entry.get("state") == "READY"]


def named_entry(name: str, namespace: str | None) -> dict[str, Any]:
    """Return the first fields of an index or statistics entry; with namespaces, it includes the namespace."""
    return {"name": name} if namespace is None else {"name": name, "namespace": namespace}


def table(models: Iterable[ManagedModel]) -> list[tuple[str, str, str]]:
    """Return the rows of the startup table: model, version, status."""
    rows = []
    for model in models:
        for number, version in sorted(model.versions.items()):
            reason = f": {version.reason}" if version.reason else ""
            rows.append((model.name, str(number), version.state + reason))
        if not model.versions:
            reason = model.error or "No model version was found"
            rows.append((model.name, "-", f"Not loaded: {reason}"))
    return rows


def all_ready(models: Iterable[ManagedModel]) -> bool:
    """Return whether every wanted model can serve with every version that it should have."""
    return all(
        not (model.wanted and not model.versions) and all(map(_fine, model.versions.values()))
        for model in models
    )


def _fine(version: ModelVersion) -> bool:
    if version.state == "READY":
        return version.chain.ready
    return version.state == "UNAVAILABLE" and version.reason == UNLOADED


def _active(version: ModelVersion) -> bool:
    return version.state != "UNAVAILABLE" or version.reason != UNLOADED


def _entry(version: ModelVersion) -> dict[str, Any]:
    entry = {"version": str(version.version), "state": version.state}
    if version.state == "LOADING":
        entry["reason"] = f"it {version.progress.step}"
    elif version.reason:
        entry["reason"] = version.reason
    return entry
