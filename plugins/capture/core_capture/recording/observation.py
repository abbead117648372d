"""Captured: one call while it runs, and what the writer gets of it."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import Any

from frontends.shared.call_observers import Message, ObservedCall

GOOD = {"http": range(0, 400), "grpc": range(0, 1)}
"""Statuses of calls that have not failed."""


class Captured:
    """Observes one call (CallObservation).

    Event loop only; after `done` has been called, the writer's thread only.

    most_bytes   of its messages that are kept; later ones are left out
    done         called once, at the end of the call
    """

    __slots__ = (
        *("_done", "_left", "answers", "began_ns", "call", "cut", "duration_ns"),
        *("answer_head", "received", "sent", "status", "time_ns"),
    )

    def __init__(
        self, call: ObservedCall, answers: bool, most_bytes: int, done: Callable[[Captured], None]
    ):
        self.call = call
        self.answers = answers
        self.time_ns = time.time_ns()
        self.began_ns = time.monotonic_ns()
        self.duration_ns = 0
        self.status = 0
        self.answer_head = b""
        self.cut = False
        self.received: list[
            tuple[int, list[Any]]
        ] = []  # time after the beginning, parts of a message
        self.sent: list[tuple[int, list[Any]]] = []
        self._left = most_bytes
        self._done = done

    def receive(self, message: Message) -> None:
        self._keep(self.received, message)

    def send(self, message: Message) -> None:
        if self.answers:
            # A model may use the memory of an output again once its response is sent.
            self._keep(self.sent, message, copies=True)

    def end(self, status: int, head: bytes) -> None:
        self.duration_ns = time.monotonic_ns() - self.began_ns
        self.status = status
        self.answer_head = head
        self._done(self)

    @property
    def failed(self) -> bool:
        return self.status not in GOOD[self.call.protocol]

    @property
    def size(self) -> int:
        """Return the bytes that the call holds, about."""
        return len(self.call.head) + sum(
            memoryview(part).nbytes for _, parts in (*self.received, *self.sent) for part in parts
        )

    def _keep(
        self, messages: list[tuple[int, list[Any]]], message: Message, *, copies: bool = False
    ) -> None:
        parts = message if isinstance(message, list) else [message]
        size = sum(memoryview(part).nbytes for part in parts)
        if self.cut or size > self._left:
            self.cut = True
            return
        self._left -= size
        if copies:
            parts = [each if _is_constant(each) else bytes(each) for each in parts]
        messages.append((time.monotonic_ns() - self.began_ns, parts))


def _is_constant(part: Any) -> bool:
    return type(part) is bytes or (type(part) is memoryview and type(part.obj) is bytes)
