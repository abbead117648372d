"""ModelRegistry: the managed models by name, and the order in which related ones change.

ModelManager ─► [ModelRegistry] ─► ManagedModel.  An operation holds the lock (`turn`) of every model that
it touches, acquired in the order of names. Operations on related models are serial; others overlap.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Collection, Iterable
from contextlib import AsyncExitStack, asynccontextmanager

from core.errors import CoreError, internal, invalid, reason_of
from core.lifecycle.dependencies import Steps, circular, needed_by, users_of
from core.lifecycle.host import Host
from core.lifecycle.managed import ManagedModel
from core.lifecycle.version import ModelVersion
from core.repository import ModelSource
from core.repository.catalog import Survey
from core.repository.names import name_of

logger = logging.getLogger("core")

Failures = dict[str, CoreError]


class ModelRegistry:
    """All models that were requested. Loop thread.

    models   key → model; `bring` adds, `forget` removes. A key is a name, or with namespaces a Key
    """

    def __init__(self, host: Host):
        self.models: dict[str, ManagedModel] = {}
        self._host = host
        # Names of models that are or were ensembles; avoids a scan of all models.
        self._composed: set[str] = set()

    def keys_of(self, name: str) -> list[str]:
        """Return the keys of the models with that name; with namespaces there may be several."""
        if name in self.models:
            return [name]
        return [key for key in self.models if name_of(key) == name]

    def steps(self) -> Steps:
        """Return name → names of the steps' models, of each wanted ensemble."""
        return {
            name: model.steps for name, model in self._ensembles() if model.wanted and model.steps
        }

    def _ensembles(self) -> list[tuple[str, ManagedModel]]:
        """Return the models that are or were ensembles, sorted by name."""
        return [(name, self.models[name]) for name in sorted(self._composed)]

    def alive(self) -> list[ModelVersion]:
        """Return every version that is READY or drains. One that loads is not among them."""
        return [version for model in self.models.values() for version in model.alive()]

    def asleep(self, names: Iterable[str]) -> list[str]:
        """Return the wanted ensembles that need one of `names`, do not serve and are not at rest."""
        users = map(self.models.__getitem__, users_of(names, self.steps()))
        return [each.name for each in users if each.newest is None and not each.at_rest]

    async def bring(self, found: Survey, by_name: Collection[str] = ()) -> Failures:
        """Apply a survey (name → source or error) to the models: steps before ensembles, others in parallel.

        by_name   the models among them that were requested by their own name
        Returns the models that failed, with the reason; their serving versions stay.
        """
        steps = {
            name: [step for step in source.steps if step in found]
            for name, source in found.items()
            if isinstance(source, ModelSource)
        }
        failures: Failures = {}
        tasks: dict[str, asyncio.Task[None]] = {}
        for name, way in circular(steps).items():
            failures[name] = invalid(
                f"load failed for model '{name}': circular dependency between ensembles: "
                f"{' -> '.join(way)}\n"
            )

        async def apply(name: str) -> None:
            model = self.models[name]
            if name not in failures:
                first = steps.get(name, [])
                with model.loading(first):
                    await asyncio.gather(*(tasks[step] for step in first))
                    error = await self._apply(model, found[name])
                if error is not None:
                    failures[name] = error

        async with self._turns(found):
            for name in found:
                self.models[name].wanted = True
                self.models[name].by_name |= name in by_name
            tasks.update((name, self._host.loop.create_task(apply(name))) for name in found)
            await asyncio.gather(*tasks.values())
        return failures

    async def take_out(self, name: str, with_steps: bool = False) -> None:
        """Unload a model, after the ensembles that need it. These stay wanted, so they load again with it.

        with_steps   also unload the models that it is composed of, except those that were requested by
                     name or that another ensemble needs
        Returns when no version of `name` is READY; its last requests may finish later.
        """
        while True:
            users = self._users(name)
            steps = needed_by(name, self.steps()) if with_steps else []
            needed = [step for step in steps if step in self.models]
            async with self._turns([*users, name, *needed]):
                # A new ensemble may have come meanwhile: start again, with its lock too.
                if set(self._users(name)) <= set(users):
                    await self._take_out(users, name, needed)
                    return

    async def _take_out(self, users: list[str], name: str, needed: list[str]) -> None:
        # In series: a request inside an ensemble still needs the ensemble's steps.
        for user in users:
            await _gone(self.models[user])
        last = self.models[name]
        last.dismiss()
        for step in map(self.models.__getitem__, needed):
            if not step.by_name:
                await _gone(last)
                if not any(step.name in model.needs for _, model in self._ensembles()):
                    step.dismiss()
                    last = step

    async def rest(self, name: str, reason: str) -> bool:
        """See ModelManager.rest."""
        names = [*self._users(name), name]
        if any(each not in self.models or self.models[each].users for each in names):
            return False
        async with self._turns(names):
            for each in names:
                await _gone(self.models[each], reason)
        return True

    def forget(self, keep: Collection[str]) -> None:
        """Drop each model that is not in `keep`, that no operation uses and that has no loaded version."""
        for name, model in list(self.models.items()):
            if name not in keep and not model.users and not model.alive():
                del self.models[name]  # bounds memory: clients may send any name
                self._composed.discard(name)

    def _users(self, name: str) -> list[str]:
        """Return the ensembles that call a model, directly or not, each before the models that it calls."""
        return users_of([name], {each: model.needs for each, model in self._ensembles()})

    async def _apply(self, model: ManagedModel, found: ModelSource | CoreError) -> CoreError | None:
        if isinstance(found, CoreError):
            model.refuse(found)
            return found
        if found.steps:
            self._composed.add(model.name)
        try:
            await model.apply(found)
        except CoreError as error:
            return error
        except Exception as error:  # one failed model must not end an operation on many
            logger.exception("loading model '%s' failed", model.name)
            return internal(f"load failed for model '{model.name}': {reason_of(error)}\n")
        return None

    @asynccontextmanager
    async def _turns(self, names: Iterable[str]) -> AsyncIterator[None]:
        """Hold the lock (`turn`) of each model within the block; create a ManagedModel for each new name."""
        models = [
            self.models.setdefault(name, ManagedModel(name, self._host))
            for name in sorted(set(names))
        ]
        for model in models:
            model.users += 1
        try:
            async with AsyncExitStack() as held:
                for model in models:
                    await held.enter_async_context(model.turn)
                yield
        finally:
            for model in models:
                model.users -= 1


async def _gone(model: ManagedModel, rest: str = "") -> None:
    """Unload a model, and wait until its versions have answered their last requests and are unloaded."""
    if leaving := model.unload(rest):
        await asyncio.wait(leaving)
