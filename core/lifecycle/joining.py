"""Joining: adds models from folders outside the repositories, and removes them. Catalog reads the folders."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterable
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any
from weakref import WeakValueDictionary

from core.errors import already_exists, invalid
from core.lifecycle.dependencies import needed_by
from core.lifecycle.host import Host
from core.lifecycle.managed import ManagedModel
from core.lifecycle.model_registry import ModelRegistry
from core.repository import Catalog, JoinedFolder, ModelLocation, Override


class Joining:
    """The joined models. Loop thread.

    load     load a model by its name
    forget   drop models that no longer exist
    begin    start an operation without waiting for it
    places   locations of the joined models, by name; a model that still loads is not among them
    """

    def __init__(
        self,
        catalog: Catalog,
        registry: ModelRegistry,
        host: Host,
        load: Callable[[str, Override | None], Awaitable[None]],
        forget: Callable[[], Awaitable[None]],
        begin: Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]],
    ):
        self.places: dict[str, ModelLocation] = {}
        self._catalog = catalog
        self._registry = registry
        self._host = host
        self._load = load
        self._forget = forget
        self._begin = begin
        # Joins and leaves of one name are serial. Weak values: an unused lock disappears.
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._last: dict[str, asyncio.Task[None]] = {}  # final unload of models that left

    async def join(self, place: ModelLocation) -> None:
        """Load the model of a location. Raises the errors of ModelManager.join; then nothing has joined."""
        async with self._turn(place.name):
            names = await self._host.run(self._catalog.join, JoinedFolder(place))
            try:
                self._refuse_taken(place.name, [place.name, *sorted(names)])
            except BaseException:
                await self._host.run(self._catalog.leave, place)
                raise
            try:
                await self._load(place.name, None)
            except BaseException:
                await self._take_out(place)
                raise
            self.places[place.name] = place

    async def leave(self, name: str) -> None:
        """Unload a model and the models that it is composed of. Do nothing if it has not joined.

        Its last requests may finish later: see `is_empty`.
        """
        async with self._turn(name):
            if (place := self.places.pop(name, None)) is not None:
                await self._take_out(place)

    def is_empty(self, name: str) -> bool:
        """Return False while a model that has left finishes its requests; True at any other time."""
        return name not in self._last

    def turn(self, name: str) -> AbstractAsyncContextManager[object]:
        """Return a context that keeps a load apart from joins and leaves of that name, if there are any."""
        if name in self.places or name in self._turns:
            return self._turn(name)
        return nullcontext()

    def _turn(self, name: str) -> asyncio.Lock:
        return self._turns.setdefault(name, asyncio.Lock())

    def _refuse_taken(self, name: str, names: Iterable[str]) -> None:
        """Raise CoreError if one of `names` is in use: ALREADY_EXISTS for `name`, INVALID for another."""
        models = self._registry.models
        for each in names:
            if any(models[key].counts for key in self._registry.keys_of(each)):
                refuse = already_exists if each == name else invalid
                raise refuse(f"there is a model '{each}' already")

    async def _take_out(self, place: ModelLocation) -> None:
        models = self._registry.models
        key = self._catalog.key_of_place(place)
        related: list[ManagedModel] = []
        if key in models:
            steps = needed_by(key, self._registry.steps())
            related = [models[each] for each in (key, *steps) if each in models]
            await self._registry.take_out(key, with_steps=True)
            await self._forget()
        await self._host.run(self._catalog.leave, place)
        gone = [each for each in related if not each.wanted]
        leaving = [task for each in gone for task in each.leaving]
        self._last[place.name] = self._begin(self._end(place.name, leaving))

    async def _end(self, name: str, leaving: Collection[asyncio.Task[None]]) -> None:
        if leaving:
            await asyncio.wait(leaving)
        await self._forget()
        if self._last.get(name) is asyncio.current_task():
            del self._last[name]
