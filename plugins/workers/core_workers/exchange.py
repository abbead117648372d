"""Exchange: send the request of one worker to all workers and collect their answers, in the supervisor.

worker ─► ask ─► [Exchange] ─► do, to each ─► answers ─► the worker that asked.  The exchange does not read
bodies. It runs one change at a time, so that all workers see changes in the same order.
"""

from __future__ import annotations

import asyncio
import itertools
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from typing import Any, NamedTuple

from core_workers.channel import Message
from core_workers.ledger import Entry, Ledger
from core_workers.operation import Operation

Send = Callable[[dict[str, Any], bytes], None]


class Answer(NamedTuple):
    """The answer of one worker to a request.

    body     the result, or the error, which values.py has packed
    failed   True if the body is an error
    idle     True if there was nothing to change in the worker
    """

    body: bytes
    failed: bool = False
    idle: bool = False


@dataclass
class _Question:
    """One request to workers, and the workers whose answers are missing."""

    missing: set[int]
    done: asyncio.Event = field(default_factory=asyncio.Event)
    answers: dict[int, Answer] = field(default_factory=dict)

    def without(self, worker: int) -> None:
        self.missing.discard(worker)
        if not self.missing:
            self.done.set()


class Exchange:
    """Sends requests to all workers and collects their answers. Use it on the supervisor's event loop only.

    turn     lock: only its holder may change all workers or start one
    ledger   the changes since the start that a worker which starts later must run

    patience_s   seconds for which `ask` waits for answers
    """

    def __init__(self, patience_s: float = 10.0) -> None:
        self._patience_s = patience_s
        self.turn = asyncio.Lock()
        self.ledger = Ledger()
        self._peers: dict[int, Send] = {}  # worker → its channel
        self._joined: set[int] = set()  # workers that receive requests to all
        self._questions: dict[int, _Question] = {}
        self._operations: dict[int, Operation] = {}
        self._numbers = itertools.count(1)

    # workers --------------------------------------------------------------

    def connect(self, worker: int, send: Send) -> None:
        """Add a worker, to which `send` sends messages. It takes part in requests to all after `join`."""
        self._peers[worker] = send

    def join(self, worker: int) -> None:
        """Include a worker, which `connect` has added, in later requests to all."""
        self._joined.add(worker)

    def leave(self, worker: int) -> None:
        """Remove a worker that has ended. Open requests stop waiting for it; in operations it has failed."""
        self._peers.pop(worker, None)
        self._joined.discard(worker)
        for question in self._questions.values():
            question.without(worker)
        for operation in list(self._operations.values()):
            operation.ended(worker, f"worker {worker} has ended")

    # operations -----------------------------------------------------------

    def begin(self, workers: Iterable[int]) -> Operation:
        """Begin an operation in which these workers take part. The caller ends it with `end`."""
        operation = Operation(next(self._numbers), set(workers), self._tell)
        self._operations[operation.number] = operation
        return operation

    def end(self, operation: Operation) -> None:
        self._operations.pop(operation.number, None)

    # messages of workers -----------------------------------------------------

    def answered(self, worker: int, message: Message) -> None:
        """Record a worker's answer to a request.

        If the request belongs to an open operation, the worker has ended its part in it.
        """
        head = message.head
        answer = Answer(message.body, head["failed"], head["idle"])
        operation = self._operations.get(head["operation"])
        if operation is not None:
            operation.ended(worker, f"worker {worker} failed" if answer.failed else "")
        question = self._questions.get(head["id"])
        if question is not None:
            question.answers[worker] = answer
            question.without(worker)

    def voted(self, worker: int, message: Message) -> None:
        """Count the vote of a worker that has loaded a model, or has failed to, in its operation.

        If the operation has already ended, the worker's own vote decides, and is sent back to it.
        """
        head = message.head
        operation = self._operations.get(head["operation"])
        if operation is None:
            operation = Operation(head["operation"], (), self._tell)  # it has ended: decide alone
        operation.vote(worker, head["model"], head["objection"])

    def _tell(self, worker: int, operation: int, model: str, objection: str) -> None:
        head = {"operation": operation, "model": model, "objection": objection}
        self.send(worker, {"kind": "verdict", **head})

    # questions ---------------------------------------------------------------

    async def ask(self, method: str, body: bytes) -> dict[int, Answer | None]:
        """Run a method in all workers that have joined; return worker → answer.

        A worker that does not answer in time has None. One that ends meanwhile is left out.
        body   the packed arguments
        """
        return await self._ask(method, body, self._joined, 0, self._patience_s)

    async def change(
        self, method: str, body: bytes, subject: str = "", forgets: bool = False
    ) -> dict[int, Answer | None]:
        """Wait for earlier changes, run a method that changes something in all workers; return their answers.

        subject   subject of the change in the ledger; "" to keep no entry there
        forgets   True if the change restores the subject's state of the start: its entry is dropped then
        If the method fails in some workers, the others undo it, and the ledger stays as it is. A change for
        which all workers were idle is not kept either.
        """
        async with self.turn:
            operation = self.begin(self._joined)
            try:
                answers = await self._ask(method, body, self._joined, operation.number, None)
            finally:
                self.end(operation)
            failed = [worker for worker, each in answers.items() if each is None or each.failed]
            if failed:
                for worker in set(answers) - set(failed):
                    self.send(worker, {"kind": "undo"})
            elif forgets:
                self.ledger.drop(subject)
            elif subject and any(each is not None and not each.idle for each in answers.values()):
                self.ledger.keep(subject, Entry(method, body))
            return answers

    async def catch_up(self, worker: int) -> None:
        """Run the changes of the ledger in a worker that has started later, one after the other.

        A change that fails there is skipped. The caller holds `turn`.
        """
        for entry in list(self.ledger.entries()):
            operation = self.begin({worker})
            try:
                await self._ask(entry.method, entry.body, {worker}, operation.number, None)
            finally:
                self.end(operation)

    async def _ask(
        self,
        method: str,
        body: bytes,
        workers: Iterable[int],
        operation: int,
        patience_s: float | None,
    ) -> dict[int, Answer | None]:
        number = next(self._numbers)
        asked = sorted(workers)
        question = self._questions[number] = _Question(set(asked))
        try:
            for worker in asked:
                head = {"kind": "do", "id": number, "operation": operation, "method": method}
                self.send(worker, head, body)
            if asked:
                await asyncio.wait_for(question.done.wait(), patience_s)
        except asyncio.TimeoutError:
            pass
        finally:
            del self._questions[number]
        silent: Mapping[int, Answer | None] = dict.fromkeys(question.missing)
        return {**question.answers, **silent}

    def send(self, worker: int, head: dict[str, Any], body: bytes = b"") -> None:
        """Send a message to a worker; drop it if the worker has ended."""
        if (send := self._peers.get(worker)) is not None:
            send(head, body)
