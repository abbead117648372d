"""Relay: brings what a worker says to the others, and what they say back."""

from __future__ import annotations

import asyncio
import logging

from core_workers.channel import Message
from core_workers.exchange import Exchange

logger = logging.getLogger("core")


class Relay:
    """Loop thread of the supervisor.

    restarts   worker → how often it has been started again; the supervisor counts
    complete   whether every worker has been up
    """

    def __init__(self, exchange: Exchange, restarts: dict[int, int]):
        self.restarts = restarts
        self.complete = False
        self._exchange = exchange
        self._tasks: set[asyncio.Task[None]] = set()

    def received(self, worker: int, message: Message) -> None:
        """A worker has said something."""
        kind = message.head["kind"]
        if kind == "answer":
            self._exchange.answered(worker, message)
        elif kind == "vote":
            self._exchange.voted(worker, message)
        elif kind in ("ask", "change"):
            task = asyncio.get_running_loop().create_task(self._ask(worker, message))
            self._tasks.add(task)
            task.add_done_callback(self._done)

    def close(self) -> None:
        """The server ends: nobody waits for an answer."""
        for task in self._tasks:
            task.cancel()

    async def _ask(self, worker: int, message: Message) -> None:
        """Ask all workers what one of them wants to know, or wants to be done."""
        head = message.head
        if head["kind"] == "ask":
            answers = await self._exchange.ask(head["method"], message.body)
        else:
            answers = await self._exchange.change(
                head["method"], message.body, head["thing"], head["forgets"]
            )
        # The worker that asks comes first: what is there once for the machine is taken from it.
        order = sorted(answers, key=lambda number: (number != worker, number))
        told = [(number, each) for number in order if (each := answers[number]) is not None]
        self._exchange.send(
            worker,
            {
                "kind": "answers",
                "id": head["id"],
                "answers": [[number, len(each.body), each.failed] for number, each in told],
                "silent": [number for number in order if answers[number] is None],
                "complete": self.complete,
                "restarts": list(self.restarts.items()),
            },
            b"".join(each.body for _, each in told),
        )

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error("an answer of the workers is lost", exc_info=error)
