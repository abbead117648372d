"""ModelIndex: the models of the server and their states.

ModelManager ─► [ModelIndex] ◄─ core.control.  Read only.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterable
from typing import Any

from core.errors import Loading, internal, invalid, not_found
from core.lifecycle import report
from core.lifecycle.host import Host
from core.lifecycle.managed import ManagedModel
from core.lifecycle.model_registry import ModelRegistry
from core.lifecycle.resolving import resolved
from core.lifecycle.version import ModelVersion
from core.repository import Catalog
from core.repository.names import name_of, namespace_of
from core.request import NEWEST


class ModelIndex:
    """A read-only view of all models of the server. Not thread-safe: call from the event loop only.

    namespacing   whether several models may have one name
    """

    def __init__(self, catalog: Catalog, registry: ModelRegistry, host: Host, namespacing: bool):
        self._catalog = catalog
        self._registry = registry
        self._models = registry.models
        self._host = host
        self._namespacing = namespacing
        self._looking = False  # True during the first look at the repositories

    def resolve(self, name: str, version: int = NEWEST) -> ModelVersion:
        """Return the READY version of that number, or the newest READY one.

        Raises CoreError(NOT_FOUND) for an unknown model or version. Raises CoreError(UNAVAILABLE) during a
        load and for a known version that is not ready. Raises CoreError(INVALID) for a name that several
        models have.
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
            raise not_found(f"Request for unknown model: '{name}' is not found")
        return resolved(model, name, version)

    def _only(self, name: str) -> ManagedModel | None:
        """Return the only model of that name, or None (with namespaces).

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
        """Return (namespace, name, counts of loads and unloads) for each model.

        counts   ("loads" or "unloads", "success" or "failure") → count
        """
        return [
            (namespace_of(key), name_of(key), model.results) for key, model in self._models.items()
        ]

    def knows(self, name: str) -> bool:
        """Return whether the model was requested, by name or through an ensemble."""
        return bool(self._registry.keys_of(name))

    def raise_if_loading(self, name: str) -> None:
        """Raise Loading with the progress if the model is being loaded. `name` may be its key."""
        for key in self._registry.keys_of(name):
            if text := self._models[key].progress():
                raise Loading(text)

    def serves(self, name: str) -> bool:
        """Return whether any version of a model serves."""
        return any(each.name == name and each.state == "READY" for each in self.versions())

    def ready_versions(self, name: str) -> list[int]:
        """Numbers of the READY versions of a model, ascending. `name` may be its key."""
        model = self._models.get(name)
        versions = model.versions if model is not None else {}
        return sorted(number for number, each in versions.items() if each.state == "READY")

    def versions(self) -> Iterable[ModelVersion]:
        """Return every version that the index shows, sorted by name and number."""
        for _, model in sorted(self._models.items()):
            yield from (model.versions[number] for number in sorted(model.versions))

    def all_ready(self) -> bool:
        """Return whether every wanted model serves with every version that it should have."""
        return report.all_ready(self._models.values())

    async def check_all(self) -> bool:
        """Check the instances of every READY version. Return whether all can serve."""
        chains = [each.chain for each in self.versions() if each.state == "READY"]
        return all(await asyncio.gather(*(chain.check() for chain in chains)))

    async def look(self) -> None:
        """Refresh what `index` shows of remote repositories. Raises CoreError if one cannot be read."""
        if self._catalog.remote:
            try:
                await self._host.run(self._catalog.look)
            except OSError as error:
                raise internal(f"failed to read the model repository: {error}") from error

    def index(self, ready_only: bool = False) -> list[dict[str, Any]]:
        """Return v2 index entries for models of the repositories and models that came with load requests.

        Remote repositories contribute the models that the last look saw.
        """
        try:
            holders = self._catalog.names()
        except OSError as error:
            raise internal(f"failed to read the model repository: {error}") from error
        return report.index(holders, self._models, ready_only)

    def table(self) -> list[tuple[str, str, str]]:
        """Return (model, version, status) of every model that was tried, for the startup table."""
        return report.table(model for _, model in sorted(self._models.items()))
