"""OfflineRun: items ─► target ─► output folder, with a bounded number of items on the way."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from itertools import islice

from core.config import Signature
from core.errors import CoreError, Kind
from core_jobs.offline.inputs.files import Inputs
from core_jobs.offline.item import Item, Request, Responses
from core_jobs.offline.outputs.folder import OutputFolder
from core_jobs.offline.outputs.forms import written
from core_jobs.offline.targets.target import Target

_AHEAD = (
    4  # items in memory for each request at the model: later ones wait for their turn to be written
)
_READ_BYTES = 1 << 20  # of items that are read at a time
_FIRST_PAUSE_S = 0.1
_LONGEST_PAUSE_S = 5.0
_GOODBYE_S = 5.0  # for requests at the model when the run is stopped
_REPEATED = (Kind.UNAVAILABLE, Kind.EXHAUSTED)


class TooManyErrors(Exception):
    """More requests have failed than --max-errors permits."""


@dataclass(frozen=True)
class RunSettings:
    """How a run works.

    form         of the outputs
    concurrency  requests at the model at a time
    max_errors   failed requests after which it stops; -1 for any number
    patience_s   for which a request is sent again while the server is away or has no room
    """

    form: str = "jsonl"
    concurrency: int = 16
    max_errors: int = 10
    patience_s: float = 60.0


Outcome = tuple[Responses | None, CoreError | None]


class OfflineRun:
    """One run. Use it on one event loop.

    on_progress   called with the numbers of items and bytes that are done, and of failed items
    """

    def __init__(
        self,
        target: Target,
        inputs: Inputs,
        folder: OutputFolder,
        settings: RunSettings,
        on_progress: Callable[[int, int, int], object],
    ):
        self._target = target
        self._inputs = inputs
        self._folder = folder
        self._failed_before = folder.failed
        self._settings = settings
        self._on_progress = on_progress
        self._slots = asyncio.Semaphore(settings.concurrency)
        self._room = asyncio.Semaphore(_AHEAD * settings.concurrency)
        self._bytes = 0
        self._stopped = asyncio.Event()

    def stop(self) -> None:
        """Begin no more requests; `run` returns when those at the model are done, after 5 s at the latest."""
        self._stopped.set()

    async def run(self, signature: Signature) -> bool:
        """Run the items that are not done; return whether all are.

        Raises TooManyErrors, and CoreError for an input file that cannot be read.
        """
        items = self._inputs.items(signature)
        await asyncio.to_thread(self._skip, items)
        waiting: asyncio.Queue[tuple[Item, asyncio.Task[Outcome]] | None] = asyncio.Queue()
        tasks: set[asyncio.Task[Outcome]] = set()
        writing = asyncio.ensure_future(self._write(waiting))
        try:
            complete = await self._begin(items, waiting, tasks, writing)
            await waiting.put(None)
            await asyncio.wait({writing}, timeout=None if complete else _GOODBYE_S)
            if not writing.done():
                complete = False
            else:
                writing.result()
            return complete
        finally:
            writing.cancel()
            for task in tasks:
                task.cancel()
            await asyncio.gather(writing, *tasks, return_exceptions=True)
            self._folder.flush()

    def _skip(self, items: Iterator[Item]) -> None:
        for item in islice(items, self._folder.done):
            self._bytes += item.bytes

    async def _begin(
        self,
        items: Iterator[Item],
        waiting: asyncio.Queue[tuple[Item, asyncio.Task[Outcome]] | None],
        tasks: set[asyncio.Task[Outcome]],
        writing: asyncio.Task[None],
    ) -> bool:
        """Begin the requests of all items, as there is room; return whether that were all of them."""
        while part := await asyncio.to_thread(_next, items):
            for item, request in part:
                if not await self._has_room(writing):
                    return False
                task = asyncio.ensure_future(self._answer(request))
                tasks.add(task)
                task.add_done_callback(tasks.discard)
                await waiting.put((item, task))
        return True

    async def _has_room(self, writing: asyncio.Task[None]) -> bool:
        """Wait until one more item may be in memory; return False if the run ends before."""
        if self._stopped.is_set() or writing.done():
            return False
        if not self._room.locked():
            return await self._room.acquire()
        room = asyncio.ensure_future(self._room.acquire())
        stopped = asyncio.ensure_future(self._stopped.wait())
        try:
            await asyncio.wait({room, stopped, writing}, return_when=asyncio.FIRST_COMPLETED)
        finally:
            stopped.cancel()
            if not room.done():
                room.cancel()
        return not (self._stopped.is_set() or writing.done())

    async def _answer(self, request: Request | CoreError) -> Outcome:
        """Return the responses to an item, or its error."""
        if isinstance(request, CoreError):
            return None, request
        async with self._slots:
            try:
                return await self._patiently(request), None
            except CoreError as error:
                return None, error

    async def _patiently(self, request: Request) -> Responses:
        """Send a request, again while the server has not executed it. Raises its last error."""
        loop = asyncio.get_running_loop()
        end_s, pause_s = loop.time() + self._settings.patience_s, _FIRST_PAUSE_S
        while True:
            try:
                return await self._target.ask(request)
            except CoreError as error:
                if error.kind not in _REPEATED or loop.time() + pause_s > end_s:
                    raise
            await asyncio.sleep(pause_s)
            pause_s = min(2 * pause_s, _LONGEST_PAUSE_S)

    async def _write(
        self, waiting: asyncio.Queue[tuple[Item, asyncio.Task[Outcome]] | None]
    ) -> None:
        """Write what the items got, in their order. Raises TooManyErrors."""
        while (entry := await waiting.get()) is not None:
            item, task = entry
            responses, error = await asyncio.shield(task)
            index, most = self._folder.done, self._settings.max_errors
            if responses is not None:
                arguments = (self._settings.form, self._folder.path, index, responses)
                if self._settings.form == "jsonl":
                    members = written(*arguments)
                else:
                    members = await asyncio.to_thread(written, *arguments)
                self._folder.succeeded(index, item.source, members)
            elif error is not None:
                self._folder.has_failed(index, item.source, error.kind.name, error.message)
            self._bytes += item.bytes
            self._room.release()
            if waiting.empty():
                self._folder.flush()
            self._on_progress(self._folder.done, self._bytes, self._folder.failed)
            if 0 <= most < self._folder.failed - self._failed_before:
                raise TooManyErrors(error.message if error is not None else "")


def _next(items: Iterator[Item]) -> list[tuple[Item, Request | CoreError]]:
    """Return the next items, about _READ_BYTES of them, and their requests; none at the end."""
    found: list[tuple[Item, Request | CoreError]] = []
    size = 0
    for item in items:
        try:
            found.append((item, item.read()))
        except CoreError as error:
            found.append((item, error))
        size += item.bytes
        if size >= _READ_BYTES or len(found) >= 256:
            break
    return found
