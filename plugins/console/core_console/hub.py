"""Hub: one look a second at a source, for every open page.

Source.look ─► [Hub] ─► what has changed ─► Subscription of each page ─► events

Imports no server library: a router has a hub, too.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import AsyncIterator, Callable
from typing import Any, Protocol

import orjson

from core.errors import CoreError, unavailable

logger = logging.getLogger("core")

_LOOK_S = 1.0
_BEHIND = 4  # events that a page may not have read; then it gets the whole state again

Key = tuple[str, int]


class Source(Protocol):
    """Where the page has its data from. Called on the event loop, only while a page is open."""

    async def look(self) -> dict[str, Any]:
        """Return the state, as values for JSON. Raises CoreError if it is not known now.

        rows        of the models, each with `model` and `version`; a page gets those that have changed
        idle        models without a row: `model` and `reason`
        processes, silent, noticed, and all else: a page gets it each second
        """

    def rest(self) -> None:
        """Stop what runs for `look`: no page is open any more."""


class Hub:
    """Looks while a page is open. Loop thread only."""

    def __init__(self, source: Source):
        self._source = source
        self._pages: set[Subscription] = set()
        self._looking: asyncio.Task[None] | None = None
        self._rows: dict[Key, dict[str, Any]] = {}
        self._idle: list[dict[str, str]] = []
        self._head: dict[str, Any] = {}
        self._turn = asyncio.Lock()  # of the one that looks
        self.closed = False

    async def subscribe(self, check: Callable[[], object]) -> Subscription:
        """Return the events for a page, which begin with the whole state.

        check   called before each event; it raises CoreError if the page may not read on
        Raises CoreError(UNAVAILABLE) after `close`.
        """
        async with self._turn:
            if not self._pages and not self.closed:
                await self._look()
            if self.closed:
                self._source.rest()  # the look has opened them again
                raise unavailable("Server exiting")
            return self._joined(check)

    def _joined(self, check: Callable[[], object]) -> Subscription:
        page = Subscription(self, check)
        page.put(self._whole())
        self._pages.add(page)
        if self._looking is None:
            self._looking = asyncio.get_running_loop().create_task(self._run())
        return page

    def leave(self, page: Subscription) -> None:
        """Send no more events to a page."""
        self._pages.discard(page)
        if not self._pages and self._looking is not None:
            self._looking.cancel()
            self._looking = None
            self._source.rest()

    def close(self) -> None:
        """End the events of all pages."""
        self.closed = True
        for page in list(self._pages):
            page.put(None)
        if self._looking is not None:
            self._looking.cancel()
            self._looking = None
        self._source.rest()

    async def _run(self) -> None:
        loop = asyncio.get_running_loop()
        due = loop.time() + _LOOK_S
        while self._pages:
            await asyncio.sleep(due - loop.time())
            due = max(due + _LOOK_S, loop.time())
            try:
                async with self._turn:
                    delta = await self._look()
            except CoreError as error:  # a worker is silent; the next look may succeed
                delta = {"trouble": error.message}
            except Exception:
                logger.exception("the console cannot look at the models")
                delta = {"trouble": "the server's log has an error of the console"}
            event = _event("delta", delta)
            for page in self._pages:
                page.put(self._whole() if page.is_behind else event)

    async def _look(self) -> dict[str, Any]:
        """Look at all processes, and return what differs from the last look."""
        found = await self._source.look()
        rows = {(row["model"], row["version"]): row for row in found.pop("rows")}
        before, self._rows = self._rows, rows
        idle = found.pop("idle")
        self._head = {"at_ms": time.time_ns() // 1_000_000, **found}
        delta = {
            **self._head,
            "rows": [row for key, row in rows.items() if _differ(before.get(key), row)],
            "gone": [list(key) for key in before if key not in rows],
        }
        if idle != self._idle:
            self._idle = delta["idle"] = idle
        return delta

    def _whole(self) -> bytes:
        rows = list(self._rows.values())
        return _event("whole", {**self._head, "rows": rows, "idle": self._idle})


class Subscription:
    """The events of one page: the rest of a streamed response. Loop thread only."""

    def __init__(self, hub: Hub, check: Callable[[], object]):
        self._hub = hub
        self._check = check
        self._events: asyncio.Queue[bytes | None] = asyncio.Queue()

    @property
    def is_behind(self) -> bool:
        """Return whether the page does not read; its old events are dropped then."""
        if self._events.qsize() < _BEHIND:
            return False
        while not self._events.empty():
            self._events.get_nowait()
        return True

    def put(self, event: bytes | None) -> None:
        """Add an event; None ends them."""
        self._events.put_nowait(event)

    async def first(self) -> bytes:
        """Return the first event, which has the whole state."""
        return await self._events.get() or b""

    async def __aiter__(self) -> AsyncIterator[bytes]:
        while (event := await self._events.get()) is not None:
            try:
                self._check()
            except CoreError as error:
                yield _event("refused", {"error": error.message})
                return
            yield event

    async def aclose(self) -> None:
        """Leave the hub."""
        self._hub.leave(self)


def _differ(one: object, other: object) -> bool:
    return one is not other and one != other


def _event(name: str, value: Any) -> bytes:
    try:
        data = orjson.dumps(value)
    except TypeError:  # a text of a backend has half of a surrogate pair
        data = orjson.dumps(_whole_texts(value))
    return b"event: %b\ndata: %b\n\n" % (name.encode(), data)


def _whole_texts(value: Any) -> Any:
    """Return a value of JSON with "?" in place of each half of a surrogate pair."""
    if isinstance(value, str):
        return value.encode(errors="replace").decode()
    if isinstance(value, dict):
        return {_whole_texts(key): _whole_texts(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_whole_texts(each) for each in value]
    return value
