"""Mistakes of cancellations."""

import threading
import time

from broken_engines.contract import Changed, caught_by
from core.errors import internal


class Cancels:
    def __init__(self, stream):
        self.stream = stream

    def cancel(self):
        self.stream.cancel()


class Wrapped(Changed):
    made = Cancels

    def generate(self, prompt, sampling, emit):
        return self.made(super().generate(prompt, sampling, emit))


@caught_by(
    "test_nothing_is_computed_50_ms_after_a_cancellation",
    "test_a_client_that_disconnects_ends_its_generation",
    context=50_000,
)
class TestGoesOn(Wrapped):
    class made(Cancels):
        def cancel(self):
            pass


@caught_by("test_a_cancelled_batch_costs_no_further_step")
class TestComputesOn(Wrapped):
    class made(Cancels):
        def cancel(self):
            self.stream.cancel()
            threading.Thread(target=compute, daemon=True).start()


def compute():
    until_s = time.thread_time() + 1
    while time.thread_time() < until_s:
        pass


@caught_by("test_a_second_cancellation_does_nothing")
class TestCancelsOnce(Wrapped):
    class made(Cancels):
        def cancel(self):
            if self.stream.over:
                raise ValueError("cancelled twice")
            self.stream.cancel()


@caught_by("test_the_places_of_cancelled_generations_are_free")
class TestLosesPlaces(Changed):
    def __init__(self, **settings):
        super().__init__(most=4, **settings)
        self.free = 4

    def generate(self, prompt, sampling, emit):
        if not self.free:
            raise internal("there is no place")
        self.free -= 1
        return super().generate(prompt, sampling, emit)

    def emit(self, event, emit):
        self.free += bool(event.finish)
        emit(event)


@caught_by("test_a_cancelled_generation_does_not_change_others")
class TestChangesOthers(Changed):
    def emit(self, event, emit):
        others = any(each.over for each in self._streams)
        emit(event._replace(text=event.text.upper()) if others or self.changed else event)
        self.changed = self.changed or others

    changed = False


@caught_by("test_no_thread_stays_after_the_unload")
class TestLeavesAThread(Changed):
    def __init__(self, **settings):
        super().__init__(**settings)
        threading.Thread(target=threading.Event().wait, daemon=True, name="forgotten").start()
