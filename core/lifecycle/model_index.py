"""ModelIndex: the models of the server and their states."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable
from itertools import islice
from typing import Any

from core.errors import Loading, internal, invalid, not_found, unavailable
from core.lifecycle.host import Host, ServedModels
from core.lifecycle.managed import ManagedModel
from core.lifecycle.model_registry import ModelRegistry
from core.lifecycle.progress import seconds
from core.lifecycle.version import ModelVersion
from core.pipeline.endpoint import ModelEndpoint
from core.repository import Catalog
from core.repository.catalog import DUPLICATE
from core.repository.names import name_of, namespace_of
from core.request import NEWEST
from core.similar import did_you_mean


class ModelIndex:
    """A read-only view of all models of the server. Loop thread.

    absent   (key, version) → what stands for a version that is not READY, or None; a plugin may set it.
             Requests reach the `chain` of what it returns
    """

    def __init__(self, catalog: Catalog, host: Host):
        self._catalog = catalog
        self._registry = ModelRegistry(host)
        self._models = self._registry.models
        self._host = host
        self._namespacing = host.options.model_namespacing
        self._looking = False  # True during the first look at the repositories
        self.absent: Callable[[str, int], ModelVersion | None] = lambda key, version: None

    def provide(self, models: ServedModels) -> None:
        """Set the object through which models call other models. Call before the first load."""
        self._host.models = models

    def resolve(self, name: str, version: int = NEWEST) -> ModelVersion:
        """Return the READY version with that number, or what stands for it; for NEWEST, the newest one.

        Raises CoreError(NOT_FOUND) for an unknown model or version; for NEWEST, also if no version is READY.
        Raises CoreError(UNAVAILABLE) during a load, and for a known version by number that is not READY.
        Raises CoreError(INVALID) for a name that several models have.
        """
        model = self._models.get(name)
        if model is None and self._namespacing:
            model = self._only(name)
        if model is None:
            if self._looking:
                raise Loading(
                    "the server reads its model repositories and does not know yet whether they hold "
                    f"model '{name}'"
                )
            ready = (each.name for each in self._models.values() if each.newest is not None)
            hint = did_you_mean(name, ready)
            raise not_found(f"Request for unknown model: '{name}' is not found{hint}")
        found = model.newest if version == NEWEST else model.versions.get(version)
        if found is not None and found.state == "READY":
            return found
        if model.wanted and (other := self.absent(model.name, version)) is not None:
            return other
        if (model.newest is None or (found is not None and found.state == "LOADING")) and (
            text := model.progress()
        ):
            raise Loading(text)
        if version == NEWEST:
            raise not_found(f"Request for unknown model: '{name}' has no available versions")
        if found is None:
            raise not_found(f"Request for unknown model: '{name}' version {version} is not found")
        raise unavailable(
            f"Request for unknown model: '{name}' version {version} is not at ready state"
        )

    def missing_endpoint(self, name: str, version: int) -> ModelEndpoint:
        """Return the endpoint of a version that the table has not under `name`. Raises as `resolve` does."""
        found = self.resolve(name, version)
        if version == NEWEST and found.state == "READY" and found.key != name:
            return self._host.endpoints.find(found.key, NEWEST)
        return found.chain.handler

    def _only(self, name: str) -> ManagedModel | None:
        """Return the one model that a name without namespace means, or None if there is none.

        Raises CoreError(INVALID) if several models have the name.
        """
        found = [key for key in self._registry.keys_of(name) if self._models[key].counts]
        if len(found) > 1:
            raise invalid(
                f"There are {len(found)} identifiers of model '{name}' in global map, model namespace "
                "must be provided to resolve ambiguity."
            )
        return self._models[found[0]] if found else None

    def results(self) -> list[tuple[str | None, str, dict[tuple[str, str], int]]]:
        """Return (namespace or None, name, `results`) of each ManagedModel."""
        return [
            (namespace_of(key), name_of(key), model.results) for key, model in self._models.items()
        ]

    def knows(self, name: str) -> bool:
        """Return whether the model was requested, by name or through an ensemble, and not forgotten since."""
        return bool(self._registry.keys_of(name))

    def raise_if_loading(self, name: str) -> None:
        """Raise Loading with the progress if the model is being loaded. `name` may be its key."""
        for key in self._registry.keys_of(name):
            if text := self._models[key].progress():
                raise Loading(text)

    def serves(self, name: str) -> bool:
        """Return whether any version of a model with this name is READY."""
        return any(each.name == name and each.state == "READY" for each in self.versions())

    def ready_versions(self, name: str) -> list[int]:
        """Return the numbers of the READY versions of a model, by its key, ascending; empty if unknown."""
        versions = self._models[name].versions if name in self._models else {}
        return sorted(number for number, each in versions.items() if each.state == "READY")

    def versions(self) -> Iterable[ModelVersion]:
        """Return every version that the index shows, sorted by name and number."""
        for _, model in sorted(self._models.items()):
            yield from (model.versions[number] for number in sorted(model.versions))

    def all_ready(self) -> bool:
        """Return whether each wanted model has versions, and all but unloaded versions can serve."""
        return all(
            not (model.wanted and not model.versions)
            and all(
                _fine(each) or (model.wanted and self.absent(model.name, each.version))
                for each in model.versions.values()
            )
            for model in self._models.values()
        )

    async def check_all(self) -> bool:
        """Ask the instances of every READY version. Return whether each of these versions can serve."""
        chains = [each.chain for each in self.versions() if each.state == "READY"]
        return all(await asyncio.gather(*(chain.check() for chain in chains)))

    async def look(self) -> None:
        """Refresh what `index` shows of remote repositories. Raises CoreError if one cannot be read."""
        if self._catalog.remote:
            try:
                await self._host.run(self._catalog.look)
            except OSError as error:
                raise internal(f"failed to read the model repository: {error}") from error

    async def listed(self) -> set[str]:
        """Return the names of the models in the repositories, as a thread lists them. Raises OSError."""
        return {name_of(key) for key in await self._host.run(self._catalog.names)}

    def index(self, ready_only: bool = False) -> list[dict[str, Any]]:
        """Return the v2 entries of the index, or only those in state READY, sorted by name and version.

        A model that came with a load request is listed until all its versions are unloaded. Remote
        repositories contribute the models that the last look saw. Raises CoreError if one is unreadable.
        """
        try:
            holders = self._catalog.names()
        except OSError as error:
            raise internal(f"failed to read the model repository: {error}") from error
        versions = {name: model.versions.values() for name, model in self._models.items()}
        active = {name for name, each in versions.items() if any(map(_active, each))}
        entries = []
        for name in sorted({*holders, *active}):
            model = self._models.get(name)
            named = named_entry(name_of(name), namespace_of(name))
            if holders.get(name, 0) > 1 and name not in active:
                entries.append({**named, "state": "UNAVAILABLE", "reason": DUPLICATE})
            elif model is not None and model.versions:
                for _, version in sorted(model.versions.items()):
                    entries.append({**named, **_entry(version)})
            elif model is not None and model.error:
                entries.append({**named, "state": "UNAVAILABLE", "reason": model.error})
            else:
                entries.append(named)
        return [entry for entry in entries if not ready_only or entry.get("state") == "READY"]

    def loading(self, most: int) -> list[dict[str, Any]]:
        """Return the index entries of at most `most` loading versions, without a look at the repositories."""
        found = (
            {**named_entry(name_of(name), namespace_of(name)), **_entry(version)}
            for name, model in self._models.items()
            for version in model.versions.values()
            if version.state == "LOADING"
        )
        return list(islice(found, most))

    def table(self) -> list[tuple[str, str, str]]:
        """Return (model, version or "-", status) of each version, and of each model without one, as text."""
        rows = []
        for _, model in sorted(self._models.items()):
            for number, version in sorted(model.versions.items()):
                reason = f": {version.reason}" if version.reason else ""
                rows.append((model.name, str(number), version.state + reason))
            if not model.versions:
                reason = model.error or "No model version was found"
                rows.append((model.name, "-", f"Not loaded: {reason}"))
        return rows


def named_entry(name: str, namespace: str | None) -> dict[str, Any]:
    """Return the first fields of an index or statistics entry: the name and the namespace, if any."""
    return {"name": name} if namespace is None else {"name": name, "namespace": namespace}


def _fine(version: ModelVersion) -> bool:
    unloaded = version.state == "UNAVAILABLE" and not version.failed
    return version.chain.ready if version.state == "READY" else unloaded


def _active(version: ModelVersion) -> bool:
    return version.state != "UNAVAILABLE" or version.failed or version.at_rest


def _entry(version: ModelVersion) -> dict[str, Any]:
    entry = {"version": str(version.version), "state": version.state}
    if version.state == "LOADING":
        entry["reason"] = f"it {version.progress.step}, for {seconds(version.progress.start)}"
    elif version.reason:
        entry["reason"] = version.reason
    return entry
