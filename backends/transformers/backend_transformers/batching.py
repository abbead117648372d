"""Batcher: texts or images of all requests, computed in batches of about the same size.

request ─► [Batcher.rows] ─► items of all requests, sorted by size ─► compute ─► rows of each request
"""

from __future__ import annotations

import threading
from collections import deque
from collections.abc import Callable, Sequence
from concurrent.futures import Future
from dataclasses import dataclass, field
from typing import Any, Generic, TypeVar

import numpy as np
import torch

from backend_transformers.generation import failed
from core.errors import CoreError, internal

_MOST_AT_ONCE = 256  # items that are sorted together; those that arrive later wait for them

Item = TypeVar("Item")


@dataclass(eq=False)
class _Asked:
    """What one request waits for; the thread writes `found` and `left`."""

    left: int
    found: list[Any] = field(default_factory=list)
    answer: Future[Any] = field(default_factory=Future)


class Batcher(Generic[Item]):
    """Computes items, such as texts, on a thread of its own. It calls all functions there.

    compute    items → FP32[items, numbers] on the CPU
    order      item → what the items are sorted by
    together   sorted items → how many of the first are computed at once; 0 counts as 1
    threads    threads of an operation
    """

    def __init__(
        self,
        compute: Callable[[Sequence[Item]], Any],
        order: Callable[[Item], Any],
        together: Callable[[Sequence[Item]], int],
        threads: int,
    ):
        self._compute = compute
        self._order = order
        self._together = together
        self._threads = threads
        self._waiting: deque[tuple[Item, _Asked, int]] = deque()
        self._running = 0  # items; written by the thread
        self._changed = threading.Condition()
        self._closed = False
        self._thread = threading.Thread(target=self._run, name="transformers", daemon=True)
        self._thread.start()

    def rows(self, items: Sequence[Item]) -> Any:
        """Return a row for each item, FP32[items, numbers]. Blocks. Any thread.

        Raises the error of `compute` as a CoreError.
        """
        if not items:
            return np.zeros((0, 0), np.float32)
        asked = _Asked(len(items), [None] * len(items))
        with self._changed:
            if self._closed:
                raise internal("the engine is closed")
            self._waiting.extend((each, asked, i) for i, each in enumerate(items))
            self._changed.notify()
        asked.answer.result()
        return np.stack(asked.found)

    def counts(self) -> tuple[int, int]:
        """Return how many items wait, and how many are computed. Any thread."""
        return len(self._waiting), self._running

    def close(self) -> None:
        """End the thread. Requests that wait fail."""
        with self._changed:
            self._closed = True
            self._changed.notify()
        self._thread.join()
        for _, asked, _ in self._waiting:
            _fail(asked, internal("the engine is closed"))

    # on the thread ----------------------------------------------------------

    def _run(self) -> None:
        torch.set_num_threads(self._threads)  # OpenMP has a number per calling thread
        with torch.inference_mode():
            while taken := self._take():
                self._running = len(taken)
                while taken:
                    count = max(1, self._together([item for item, _, _ in taken]))
                    self._answer(taken[:count])
                    del taken[:count]
                    self._running = len(taken)

    def _take(self) -> list[tuple[Item, _Asked, int]]:
        """Wait for items, and return some in their order; [] once the engine is closed."""
        with self._changed:
            while not self._waiting and not self._closed:
                self._changed.wait()
            if self._closed:
                return []
            count = min(_MOST_AT_ONCE, len(self._waiting))
            taken = [self._waiting.popleft() for _ in range(count)]
        return sorted(taken, key=lambda each: self._order(each[0]))

    def _answer(self, group: Sequence[tuple[Item, _Asked, int]]) -> None:
        try:
            rows = self._compute([item for item, _, _ in group])
        except Exception as error:
            for _, asked, _ in group:
                _fail(asked, error if isinstance(error, CoreError) else failed(error))
            return
        for row, (_, asked, place) in zip(rows, group, strict=True):
            asked.found[place] = row
            asked.left -= 1
            if not asked.left and not asked.answer.done():
                asked.answer.set_result(None)


def _fail(asked: _Asked, error: CoreError) -> None:
    if not asked.answer.done():
        asked.answer.set_exception(error)
