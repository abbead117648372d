"""Relay: pass the requests of a worker to all workers, and their answers back."""

from __future__ import annotations

import asyncio
import logging

from core_workers.channel import Message
from core_workers.exchange import Exchange

logger = logging.getLogger("core")


class Relay:
    """Handles the messages of workers. Not thread-safe: use it on the supervisor's event loop only.

    restarts   worker → number of its restarts, which the supervisor counts
    complete   True after all workers have started
    """

    def __init__(self, exchange: Exchange, restarts: dict[int, int]):
        self.restarts = restarts
        self.complete = False
        self._exchange = exchange
        self._tasks: set[asyncio.Task[None]] = set()

    def received(self, worker: int, message: Message) -> None:
        """Handle a message of a worker: an answer, a vote, or a request to all workers."""
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
        """Cancel the requests that wait for answers of workers; they get none. For the end of the server."""
        for task in self._tasks:
            task.cancel()

    async def _ask(self, worker: int, message: Message) -> None:
        """Pass a worker's request to all workers, wait, and send that worker their answers, its own first."""
        head = message.head
        if head["kind"] == "ask":
            answers = await self._exchange.ask(head["method"], message.body)
        else:
            answers = await self._exchange.change(
                head["method"], message.body, head["subject"], head["forgets"]
            )
        # The requesting worker is first: values of the whole machine are taken from its answer.
        order = sorted(answers, key=lambda number: (number != worker, number))
        answered = [(number, each) for number in order if (each := answers[number]) is not None]
        self._exchange.send(
            worker,
            {
                "kind": "answers",
                "id": head["id"],
                "answers": [[number, len(each.body), each.failed] for number, each in answered],
                "silent": [number for number in order if answers[number] is None],
                "complete": self.complete,
                "restarts": list(self.restarts.items()),
            },
            b"".join(each.body for _, each in answered),
        )

    def _done(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            logger.error("an answer of the workers is lost", exc_info=error)
