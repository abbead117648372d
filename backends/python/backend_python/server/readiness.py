"""Call a model's `is_ready` in its child. Not thread-safe: call from the event loop only."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable

import orjson

from backend_python import protocol
from backend_python.protocol import Frame

logger = logging.getLogger("core")

LIMIT_S = 5.0  # for the answer, as in Triton


class Readiness:
    """The readiness of one child's model. Callers share the answer of an open question.

    name   of the instance
    send   sends a message: kind, number
    busy   returns whether the child executes: `ask` then returns the last result
    """

    def __init__(self, name: str, send: Callable[[int, int], None], busy: Callable[[], bool]):
        self._name = name
        self._send = send
        self._busy = busy
        self._number = 0
        self.waits = False  # the child has not answered the last ASK, also after LIMIT_S
        self._question: asyncio.Future[bool] | None = None  # result of the open question
        self._last = True

    async def ask(self) -> bool:
        """Return the result of is_ready; False if it raises or does not answer within LIMIT_S seconds.

        Return the last result instead if the child is busy or has not answered an earlier question.
        """
        if self._question is None:
            if self._busy() or self.waits:
                return self._last
            self._number += 1
            self._question = asyncio.get_running_loop().create_future()
            self.waits = True
            self._send(protocol.ASK, self._number)
        question = self._question
        await asyncio.wait([question], timeout=LIMIT_S)
        if not question.done():
            logger.warning("is_ready of '%s' has not answered in %g s", self._name, LIMIT_S)
            self._settle(False)
        return question.result()

    def answered(self, frame: Frame) -> None:
        """Handle TOLD, the result of is_ready: settle the question that waits.

        An error is logged and means not ready. The answer to an earlier question is ignored.
        """
        if frame.number != self._number:
            return
        self.waits = False
        answer = orjson.loads(frame.content)
        if "error" in answer:
            logger.error("is_ready of '%s' failed: %s", self._name, answer["error"])
        self._settle(answer.get("value") is True)

    def close(self) -> None:
        """Settle the question that waits, if any, as not ready."""
        self._settle(False)

    def _settle(self, ready: bool) -> None:
        question, self._question = self._question, None
        self._last = ready
        if question is not None and not question.done():
            question.set_result(ready)
