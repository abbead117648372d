"""Joining: models that lie elsewhere come while the server runs, and go again.

ModelManager ─► [Joining] ─► Catalog, which looks in their folders from then on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Collection, Coroutine, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from typing import Any
from weakref import WeakValueDictionary

from core.errors import already_exists, invalid
from core.lifecycle.dependencies import needed_by
from core.lifecycle.host import Host
from core.lifecycle.managed import ManagedModel
from core.lifecycle.roster import Roster
from core.repository import Catalog, JoinedFolder, ModelLocation, Override

Load = Callable[[str, Override | None], Awaitable[None]]
Unload = Callable[[Sequence[str], bool], Awaitable[None]]


class Joining:
    """Adds models that are in folders outside the repositories, and removes them. Loop thread only.

    load     loads a model by its name
    unload   unloads models by their keys, with what they are composed of if the second argument says so
    forget   drops what nobody has any more
    begin    runs what nobody waits for
    places   of the models that have joined, by name; one that is still being loaded is not there yet
    """

    def __init__(
        self,
        catalog: Catalog,
        roster: Roster,
        host: Host,
        load: Load,
        unload: Unload,
        forget: Callable[[], Awaitable[None]],
        begin: Callable[[Coroutine[Any, Any, None]], asyncio.Task[None]],
    ):
        self.places: dict[str, ModelLocation] = {}
        self._catalog = catalog
        self._roster = roster
        self._host = host
        self._load = load
        self._unload = unload
        self._forget = forget
        self._begin = begin
        # One name joins or leaves at a time; nobody keeps the turn of a name that nobody waits for.
        self._turns: WeakValueDictionary[str, asyncio.Lock] = WeakValueDictionary()
        self._last: dict[str, asyncio.Task[None]] = {}  # the end of those that have left

    async def join(self, place: ModelLocation) -> None:
        """Load the model of a place. Raises what ModelManager.join does, and then nothing has joined."""
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
        """Unload the model and what it is composed of. Its last requests finish behind: see `emptied`."""
        async with self._turn(name):
            if (place := self.places.pop(name, None)) is not None:
                await self._take_out(place)

    def is_empty(self, name: str) -> bool:
        """Whether no request is left of what has left under that name."""
        return name not in self._last

    async def emptied(self, name: str) -> None:
        """Wait for the last of them."""
        if (end := self._last.get(name)) is not None:
            await asyncio.wait([end])

    def turn(self, name: str) -> AbstractAsyncContextManager[object]:
        """For who loads a model by its name: not while it joins or leaves."""
        if name in self.places or name in self._turns:
            return self._turn(name)
        return nullcontext()

    def _turn(self, name: str) -> asyncio.Lock:
        return self._turns.setdefault(name, asyncio.Lock())

    def _refuse_taken(self, name: str, names: Iterable[str]) -> None:
        """A model that serves is no repository's if it came with a load request."""
        models = self._roster.models
        for each in names:
            if any(models[key].counts for key in self._roster.keys_of(each)):
                refuse = already_exists if each == name else invalid
                raise refuse(f"there is a model '{each}' already")

    async def _take_out(self, place: ModelLocation) -> None:
        models = self._roster.models
        key = self._catalog.key_of_place(place)
        related: list[ManagedModel] = []
        if key in models:
            steps = needed_by(key, self._roster.steps())
            related = [models[each] for each in (key, *steps) if each in models]
            await self._unload([key], True)
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
