"""A timer on an event loop: it calls once, never too early, and not after it was moved or closed."""

import asyncio
import contextlib
import os
import time

import pytest
import uvloop

from core.native.clock import Clock
from core.native.timer import LoopTimer
from core.system.platform import PORTABLE

MS = 1_000_000
LONG_NS = 3600 * 1000 * MS


class Calls:
    """When the timer came, and whether it may still."""

    def __init__(self, loop, clock=None):
        self.at_ns = []
        self.came = asyncio.Event()
        self.timer = LoopTimer(loop, clock or Clock(), self.note)

    def note(self):
        self.at_ns.append(time.monotonic_ns())
        self.came.set()

    async def next(self):
        await asyncio.wait_for(self.came.wait(), 20)
        self.came.clear()


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def run(request):
    """Runs a test with what notes its timer, on a loop of each kind."""

    def run(test):
        async def whole():
            calls = Calls(asyncio.get_running_loop())
            try:
                await test(calls)
            finally:
                calls.timer.close()

        loop = request.param()
        try:
            loop.run_until_complete(whole())
        finally:
            loop.close()

    return run


@pytest.mark.parametrize("after_ns", [-MS, 0, 30_000, 700_000, 3 * MS])
def test_the_timer_calls_once_and_not_too_early(run, after_ns):
    async def test(calls):
        due = time.monotonic_ns() + after_ns
        calls.timer.set(due)
        await calls.next()
        await asyncio.sleep(0.01)
        (at,) = calls.at_ns
        assert at >= due

    run(test)


def test_the_timer_can_be_set_repeatedly(run):
    async def test(calls):
        for after_ns in (MS, 2 * MS, 10_000):
            calls.timer.set(time.monotonic_ns() + after_ns)
            await calls.next()
        assert len(calls.at_ns) == 3

    run(test)


def test_the_last_time_set_counts(run):
    async def test(calls):
        calls.timer.set(time.monotonic_ns() + LONG_NS)
        calls.timer.set(time.monotonic_ns() + MS)
        await calls.next()

        calls.timer.set(time.monotonic_ns() + MS)
        later = time.monotonic_ns() + 5 * MS
        calls.timer.set(later)
        await calls.next()
        assert calls.at_ns[-1] >= later and len(calls.at_ns) == 2

    run(test)


def test_the_timer_can_be_cancelled(run):
    async def test(calls):
        calls.timer.set(time.monotonic_ns() + MS)
        calls.timer.set(0)
        await asyncio.sleep(0.01)
        assert calls.at_ns == []

        calls.timer.set(time.monotonic_ns() + MS)
        await calls.next()

    run(test)


def test_the_timer_can_be_set_in_its_callback(run):
    async def test(calls):
        times = []

        def again():
            times.append(time.monotonic_ns())
            if len(times) < 3:
                timer.set(times[-1] + 100_000)
            else:
                calls.came.set()

        timer = LoopTimer(asyncio.get_running_loop(), Clock(), again)
        timer.set(time.monotonic_ns())
        await calls.next()
        timer.close()
        assert len(times) == 3

    run(test)


def test_a_closed_timer_does_not_call(run):
    async def test(calls):
        calls.timer.set(time.monotonic_ns() + MS)
        calls.timer.close()
        calls.timer.close()
        calls.timer.set(time.monotonic_ns() + MS)
        await asyncio.sleep(0.01)
        assert calls.at_ns == []

    run(test)


@pytest.mark.skipif(PORTABLE, reason="counts timers of Linux in /proc")
def test_only_a_timer_that_was_set_opens_and_closes_a_descriptor(run):
    async def test(calls):
        def count():  # of timers only: threads of earlier tests may close theirs meanwhile
            found = 0
            for each in os.scandir("/proc/self/fd"):
                with contextlib.suppress(FileNotFoundError):
                    found += os.readlink(each.path) == "anon_inode:[timerfd]"
            return found

        before = count()
        unset, own = (Calls(asyncio.get_running_loop()) for _ in range(2))
        own.timer.set(time.monotonic_ns() + LONG_NS)
        assert count() == before + 1
        unset.timer.close()
        own.timer.close()
        assert count() == before

    run(test)


def test_with_the_clock_of_a_test_the_loop_calls_later():
    class Loop:
        def __init__(self):
            self.timers = []

        def call_later(self, delay_s, callback):
            self.timers.append((delay_s, callback))
            return self

        def cancel(self):
            self.timers.clear()

    loop, came = Loop(), []
    timer = LoopTimer(loop, Clock(lambda: 5_000), lambda: came.append(True))
    timer.set(2_005_000)
    timer.set(1_005_000)
    ((delay_s, callback),) = loop.timers
    assert delay_s == 0.001
    callback()
    assert came == [True]
