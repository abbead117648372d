"""Member: a worker's side of its channel.

core.control ─► ask, change ─► [Member] ─► the supervisor ─► the Members of all workers, this one too ─►
handlers.  Not thread-safe: use it on the event loop only.
"""

from __future__ import annotations

import asyncio
import itertools
import logging
from collections.abc import Awaitable, Callable, Mapping
from contextvars import ContextVar
from typing import Any

from core.control.exchange import Changed, Handler, ProcessResults
from core.errors import CoreError, internal, unavailable
from core_workers.channel import Channel, Message
from core_workers.tables import TablesOfWorker
from core_workers.values import pack, pack_error, unpack, unpack_error

logger = logging.getLogger("core")

_MOST_OBJECTION = 4000  # characters

# The operation to which the current task belongs; 0 for none, as for loads that a model itself starts.
_operation: ContextVar[int] = ContextVar("operation", default=0)


class Member:
    """One worker's end of the exchange between the workers.

    number, count   number of the worker, from 1 on, and number of workers
    end             set when the supervisor stops the worker, or has ended
    orphaned        True if the channel has ended, as when the supervisor has ended
    admitted        set when a worker that replaces another may open its ports
    start           operation in which the worker loads the models of the start; 0 for none
    tables          tables in memory that all workers share; None if there are none
    """

    def __init__(
        self,
        channel: Channel,
        number: int,
        count: int,
        start: int,
        tables: TablesOfWorker | None = None,
    ):
        self._channel = channel
        self.tables = tables
        self.number = number
        self.count = count
        self.end = asyncio.Event()
        self.orphaned = False
        self.admitted = asyncio.Event()
        self._start = start
        self._handlers: Mapping[str, Handler] = {}
        self._ids = itertools.count(1)
        self._asked: dict[int, asyncio.Future[Message]] = {}
        self._votes: dict[tuple[int, str], asyncio.Future[str]] = {}
        self._undo: Callable[[], object] | None = None
        self._changing = 0  # operations in progress in this worker
        self._tasks: set[asyncio.Task[None]] = set()
        self._listener = asyncio.get_running_loop().create_task(self._listen())

    def table(self, name: str) -> Any:
        """Return the table of that name that all workers share; None if the worker has no tables.

        Raises KeyError if it has others, but not this one.
        """
        return None if self.tables is None else self.tables.open(name)

    @property
    def changing(self) -> bool:
        """True while this worker changes models, at the start or in an operation."""
        return self._changing > 0

    def serve(self, handlers: Mapping[str, Handler]) -> None:
        """Set the handlers: name of a method → the function that runs it when a request for it arrives."""
        self._handlers = handlers

    async def close(self) -> None:
        """Stop listening and close the channel."""
        self._listener.cancel()
        await asyncio.wait([self._listener])
        self._channel.close()

    # the start ------------------------------------------------------------

    async def starting(self, load: Awaitable[None]) -> None:
        """Await `load`, which loads the models of the start, as a part of the operation `start`.

        So `agree` asks the workers that start at the same time.
        """
        token = _operation.set(self._start)
        self._changing += 1
        try:
            await load
        finally:
            self._changing -= 1
            _operation.reset(token)

    def started(self) -> None:
        """Report to the supervisor that the models of the start are loaded."""
        self._channel.send({"kind": "started"})

    def failed(self, error: CoreError) -> None:
        """Report to the supervisor that the worker cannot serve because of an error."""
        text = f"{error.kind.title} - {error.message}"
        self._channel.send({"kind": "failed", "reason": text[:_MOST_OBJECTION]})

    def opened(self) -> None:
        """Report to the supervisor that the ports are open."""
        self._channel.send({"kind": "opened"})

    # questions to all --------------------------------------------------------

    async def ask(self, operation: str, arguments: tuple[Any, ...]) -> ProcessResults:
        """Run a control operation in every worker, this one too; return their results and errors.

        Raises CoreError(UNAVAILABLE) if the supervisor has ended or ends meanwhile, or if the arguments are
        too long for a message.
        """
        return await self._ask({"kind": "ask", "method": operation}, arguments)

    async def change(
        self, operation: str, arguments: tuple[Any, ...], subject: str, forgets: bool
    ) -> ProcessResults:
        """Run a control operation that changes every worker, once earlier changes have ended.

        Returns and raises as `ask` does; `subject` and `forgets` are those of Exchange.change.
        """
        head = {"kind": "change", "method": operation, "subject": subject, "forgets": forgets}
        return await self._ask(head, arguments)

    async def _ask(self, head: dict[str, Any], arguments: tuple[Any, ...]) -> ProcessResults:
        if self.orphaned:
            raise unavailable("Server exiting")
        number = next(self._ids)
        try:
            self._channel.send({**head, "id": number}, pack(arguments))
        except ValueError as error:
            raise unavailable(str(error)) from None
        future = self._asked[number] = asyncio.get_running_loop().create_future()
        try:
            return _answers(self.number, await future)
        finally:
            del self._asked[number]

    # agreement ----------------------------------------------------------------

    async def alone(self, change: Awaitable[None]) -> None:
        """Await a change that concerns this worker only: within it, `agree` does not ask other workers."""
        token = _operation.set(0)
        try:
            await change
        finally:
            _operation.reset(token)

    async def agree(self, model: str, objection: str) -> str:
        """Vote on a model that this worker has tried to load; wait for the votes of all in the operation.

        Return an objection, "" if all agree. Outside an operation, no worker is asked, and the result is
        `objection`. If the supervisor ends, that is an objection.
        objection   reason why this worker cannot serve the model, "" if it can
        """
        operation = _operation.get()
        if not operation:
            return objection
        if self.orphaned:
            return "Server exiting"
        future: asyncio.Future[str] = asyncio.get_running_loop().create_future()
        self._votes[operation, model] = future
        head = {"operation": operation, "model": model, "objection": objection[:_MOST_OBJECTION]}
        self._channel.send({"kind": "vote", **head})
        try:
            return await future
        finally:
            self._votes.pop((operation, model), None)

    # receiving ------------------------------------------------------------------

    async def _listen(self) -> None:
        while (message := await self._channel.receive()) is not None:
            self._receive(message)
        self.orphaned = True
        self.end.set()
        for asked in self._asked.values():
            if not asked.done():
                asked.set_exception(unavailable("Server exiting"))
        for vote in self._votes.values():
            if not vote.done():
                vote.set_result("Server exiting")

    def _receive(self, message: Message) -> None:
        head = message.head
        kind = head["kind"]
        if kind == "do":
            task = asyncio.get_running_loop().create_task(self._do(message))
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)
        elif kind == "answers":
            _settle(self._asked.get(head["id"]), message)
        elif kind == "verdict":
            _settle(self._votes.get((head["operation"], head["model"])), head["objection"])
        elif kind == "undo":
            if self._undo is not None:
                self._undo()
        elif kind == "open":
            self.admitted.set()
        elif kind == "stop":
            self.end.set()

    async def _do(self, message: Message) -> None:
        """Call the handler of a request, and send the supervisor the result or the error.

        For a request of an operation, that is for a change, keep what undoes it.
        """
        head = message.head
        operation = head["operation"]
        answer = {"id": head["id"], "operation": operation, "failed": False, "idle": False}
        if operation:
            _operation.set(operation)
            self._undo = None
            self._changing += 1
        try:
            value = await self._handlers[head["method"]](*unpack(message.body))
            if isinstance(value, Changed):
                self._undo = value.undo
                answer["idle"] = value.idle
                value = value.value
            body = pack(value)
        except CoreError as error:
            answer["failed"], body = True, pack_error(error)
        except Exception as error:
            logger.exception("a question about the server failed: %s", head["method"])
            answer["failed"] = True
            body = pack_error(internal(f"{head['method']}: {type(error).__name__}: {error}"))
        finally:
            self._changing -= bool(operation)
        self._channel.send({"kind": "answer", **answer}, body)


def _settle(future: asyncio.Future[Any] | None, value: Any) -> None:
    if future is not None and not future.done():
        future.set_result(value)


def _answers(own: int, message: Message) -> ProcessResults:
    head = message.head
    values: dict[int, Any] = {}
    errors: dict[int, CoreError] = {}
    start = 0
    for worker, size, failed in head["answers"]:
        body = message.body[start : start + size]
        start += size
        if failed:
            errors[worker] = unpack_error(body)
        else:
            values[worker] = unpack(body)
    restarts = {number: count for number, count in head["restarts"]}
    return ProcessResults(own, values, errors, tuple(head["silent"]), head["complete"], restarts)
