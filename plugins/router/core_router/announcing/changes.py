"""ModelChanges: the models that have changed, for each router that reads them.

core_model_changed ─► [ModelChanges] ─► every process of the server ─► Readers ─► events
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Sequence

import orjson

from core.errors import CoreError
from frontends.http.message import encoded_event

logger = logging.getLogger("core")

_TOGETHER_S = 0.01  # in which changes become one event
_MOST_BYTES = 16_384  # of names in an event; readers read their lines as a whole
# A reader whose connection has silently ended must notice that, and so must the server.
_BEAT_S = 20.0
_BEAT = b":\n\n"
# Then a reader comes again, so that its token is checked again.
_LONGEST_S = 600.0


def event(models: Sequence[str]) -> bytes:
    """Return an event with the models that have changed; with none of them if these are too many."""
    data = orjson.dumps({"models": models})
    return encoded_event("models", data if len(data) <= _MOST_BYTES else b'{"models":[]}')


class Reader:
    """The events for one router: the rest of a streamed response. Event loop only."""

    def __init__(self, readers: Readers):
        self._readers = readers
        self._models: dict[str, None] = {}
        self._wake = asyncio.Event()
        self._is_over = False

    def tell(self, models: Iterable[str]) -> None:
        """Add models to the next event."""
        self._models.update(dict.fromkeys(models))
        self._wake.set()

    def end(self) -> None:
        """End the events."""
        self._is_over = True
        self._wake.set()

    async def __aiter__(self) -> AsyncIterator[bytes]:
        loop = asyncio.get_running_loop()
        end_s = loop.time() + _LONGEST_S
        while not self._is_over and loop.time() < end_s:
            try:
                await asyncio.wait_for(self._wake.wait(), _BEAT_S)
            except asyncio.TimeoutError:
                yield _BEAT
                continue
            self._wake.clear()
            models, self._models = [*self._models], {}
            if models and not self._is_over:
                yield event(models)

    async def aclose(self) -> None:
        """Leave: the router has gone."""
        self._readers.leave(self)


class Readers:
    """The routers that read in this process. Event loop only."""

    def __init__(self) -> None:
        self._readers: set[Reader] = set()
        self._is_over = False

    def __len__(self) -> int:
        return len(self._readers)

    def join(self) -> Reader:
        """Return the events for one more router. They are over at once if the port stops."""
        found = Reader(self)
        self._readers.add(found)
        if self._is_over:
            found.end()
        return found

    def leave(self, reader: Reader) -> None:
        self._readers.discard(reader)

    def tell(self, models: Iterable[str]) -> None:
        """Tell all routers of models that have changed."""
        for each in self._readers:
            each.tell(models)

    def end(self) -> None:
        """End the events of all routers: the port waits for none of them."""
        self._is_over = True
        for each in self._readers:
            each.end()


class ModelChanges:
    """Collects the changes of one process, and tells them together. Event loop only.

    tell      tells models to the readers of all processes
    is_read   returns whether somebody may read them
    """

    def __init__(
        self, tell: Callable[[list[str]], Awaitable[None]], is_read: Callable[[], bool]
    ) -> None:
        self._tell = tell
        self._is_read = is_read
        self._loop = asyncio.get_running_loop()
        self._models: dict[str, None] = {}
        self._telling: set[asyncio.Task[None]] = set()

    def changed(self, model: str) -> None:
        """Tell of a model soon. Changes of a server with another event loop are none of this one."""
        try:
            is_own = asyncio.get_running_loop() is self._loop
        except RuntimeError:  # no event loop at all
            is_own = False
        if not is_own or not self._is_read():
            return
        if not self._models:
            self._loop.call_later(_TOGETHER_S, self._flush)
        self._models[model] = None

    def _flush(self) -> None:
        models, self._models = [*self._models], {}
        task = self._loop.create_task(self._told(models))
        self._telling.add(task)
        task.add_done_callback(self._telling.discard)

    async def _told(self, models: list[str]) -> None:
        try:
            await self._tell(models)
        except CoreError as error:  # a worker is about to end; the routers read the index later
            logger.debug("routers are not told of %d models: %s", len(models), error.message)
