"""Unanswered: response senders that owe a last response, and the garbage collector that finds lost ones.

Only the garbage collector finds a sender in a reference cycle. It does not run by itself in an idle process,
so the client would wait for ever.
"""

from __future__ import annotations

import gc
import threading
import time

PERIOD_S = 1.0  # between two looks
_FULL = 10  # checks without a response before a full collection; doubles each time
_IDLE = 5  # checks without a sender before the thread ends


class Unanswered:
    """The senders of this process that owe a last response. Thread-safe without locks, also in destructors.

    While a sender sends no response, a thread collects garbage: the young objects after one period, all
    objects after ten, and then after doubled times.
    """

    def __init__(self, period_s: float = PERIOD_S) -> None:
        self._period_s = period_s
        self._answers: dict[int, int] = {}  # sender → number of its responses
        self._watched = False

    def add(self, sender: int) -> None:
        """Add a sender, by its id(), that owes a response."""
        self._answers[sender] = 0
        if not self._watched:
            self._watched = True
            threading.Thread(target=self._watch, name="core-unanswered", daemon=True).start()

    def gave(self, sender: int) -> None:
        """Count a response of a sender that is not the last."""
        if (answers := self._answers.get(sender)) is not None:
            self._answers[sender] = answers + 1

    def remove(self, sender: int) -> None:
        """Remove a sender that owes no response. A second call does nothing."""
        self._answers.pop(sender, None)

    def _watch(self) -> None:
        before: dict[int, int] = {}
        idle = silent = 0
        while idle < _IDLE:
            time.sleep(self._period_s)
            now = self._answers.copy()
            idle = 0 if now else idle + 1
            silent = silent + 1 if any(before.get(k) == n for k, n in now.items()) else 0
            before = now
            if silent and (oldest := generation(silent)) is not None:
                gc.collect(oldest)
        self._watched = False
        for sender in list(self._answers)[:1]:  # added before the thread ended: start a new thread
            self.add(sender)


def generation(silent: int) -> int | None:
    """Return the oldest generation to collect after `silent` checks without a response; None for none."""
    if silent == 1:
        return 1
    looks = _FULL
    while looks < silent:
        looks *= 2
    return 2 if looks == silent else None


unanswered = Unanswered()
