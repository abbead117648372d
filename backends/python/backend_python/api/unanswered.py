"""Unanswered: response senders that owe a last answer, and the garbage collector that finds lost ones.

A sender in a reference cycle is found by the garbage collector alone. It does not run by itself in a process
where nothing happens, and the client would wait for ever.
"""

from __future__ import annotations

import gc
import threading
import time

PERIOD_S = 1.0  # between two looks
_FULL = 10  # looks without an answer before all objects are looked at; doubles each time
_IDLE = 5  # looks without a sender, and the thread ends


class Unanswered:
    """The senders of this process that owe a last answer. Any thread, also destructors: takes no lock.

    While some of them give no answer, a thread collects garbage: the young objects after a second, all of
    them after ten seconds, and then after ever longer times.
    """

    def __init__(self, period_s: float = PERIOD_S) -> None:
        self._period_s = period_s
        self._answers: dict[int, int] = {}  # sender → how many answers it has given
        self._watched = False

    def add(self, sender: int) -> None:
        """A sender that owes an answer; the number is its id()."""
        self._answers[sender] = 0
        if not self._watched:
            self._watched = True
            threading.Thread(target=self._watch, name="core-unanswered", daemon=True).start()

    def gave(self, sender: int) -> None:
        """It has given an answer that is not the last."""
        if (answers := self._answers.get(sender)) is not None:
            self._answers[sender] = answers + 1

    def remove(self, sender: int) -> None:
        """It owes nothing any more. A second call does nothing."""
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
        for sender in list(self._answers)[:1]:  # it was added in between, and found a thread
            self.add(sender)


def generation(silent: int) -> int | None:
    """The oldest generation to collect after so many looks without an answer; None for no collection."""
    if silent == 1:
        return 1
    looks = _FULL
    while looks < silent:
        looks *= 2
    return 2 if looks == silent else None


unanswered = Unanswered()
