"""Recorder: the events of one generation, and the check of their form while they arrive."""

from __future__ import annotations

import threading
import time

from core_generate import Event, Logprob

from core.errors import CoreError
from core_testing.patience import PATIENCE_S


class Recorder:
    """Takes the events of one generation, on any thread.

    events     in the order of their arrival
    error      the CoreError that has ended the generation; or None
    mistakes   texts: two calls at once, a call after the last event, an unknown `finish`, one that does not
               fit `stop`
    """

    def __init__(self) -> None:
        self.events: list[Event] = []
        self.error: CoreError | None = None
        self.mistakes: list[str] = []
        self._ended = False
        self._running = threading.Lock()
        self._arrived = threading.Condition()

    def __call__(self, event: Event | CoreError) -> None:
        if not self._running.acquire(blocking=False):
            self.mistakes.append("two calls of emit at once")
            return
        try:
            with self._arrived:
                if self._ended:
                    self.mistakes.append(f"after the last event came {event!r}")
                if isinstance(event, CoreError):
                    self.error = event
                else:
                    self.events.append(event)
                    if event.finish not in ("", "stop", "length"):
                        self.mistakes.append(f"finish is '{event.finish}'")
                    if event.stop and event.finish != "stop":
                        self.mistakes.append(f"finish is '{event.finish}' with a stop string")
                self._ended = self._ended or isinstance(event, CoreError) or bool(event.finish)
                self._arrived.notify_all()
        finally:
            self._running.release()

    def wait(self, events: int = 0) -> Recorder:
        """Wait until the generation has ended, or until `events` have come if that is not 0. Return self.

        Raises the CoreError that has ended the generation, and AssertionError for `mistakes` or after
        PATIENCE_S seconds.
        """
        deadline_s = time.monotonic() + PATIENCE_S
        with self._arrived:
            while not self._ended and (not events or len(self.events) < events):
                left_s = deadline_s - time.monotonic()
                if left_s <= 0:
                    raise AssertionError(
                        f"no last event within {PATIENCE_S:g} s; there were {len(self.events)} events"
                    )
                self._arrived.wait(left_s)
        assert not self.mistakes, "; ".join(self.mistakes)
        if self.error is not None:
            raise self.error
        return self

    @property
    def text(self) -> str:
        return "".join(each.text for each in self.events)

    @property
    def finish(self) -> str:
        return self.events[-1].finish

    @property
    def tokens(self) -> list[int]:
        return [token for each in self.events for token in each.tokens]

    @property
    def logprobs(self) -> list[Logprob]:
        return [logprob for each in self.events for logprob in each.logprobs]

    @property
    def count(self) -> int:
        return sum(each.count or len(each.tokens) for each in self.events)
