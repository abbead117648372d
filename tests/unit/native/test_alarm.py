"""A time on an event loop: called once, never too early, not after it was put off or closed."""

import asyncio
import os
import sys
import time

import pytest
import uvloop

from core.native.alarm import Alarm
from core.native.clock import Clock

MS = 1_000_000
LONG_NS = 3600 * 1000 * MS


class Calls:
    """When the alarm came, and whether it may still."""

    def __init__(self, loop, clock=None):
        self.at_ns = []
        self.came = asyncio.Event()
        self.alarm = Alarm(loop, clock or Clock(), self.note)

    def note(self):
        self.at_ns.append(time.monotonic_ns())
        self.came.set()

    async def next(self):
        await asyncio.wait_for(self.came.wait(), 20)
        self.came.clear()


@pytest.fixture(params=[asyncio.new_event_loop, uvloop.new_event_loop], ids=["asyncio", "uvloop"])
def run(request):
    """Runs a test with what notes its alarm, on a loop of each kind."""

    def run(test):
        async def whole():
            calls = Calls(asyncio.get_running_loop())
            try:
                await test(calls)
            finally:
                calls.alarm.close()

        loop = request.param()
        try:
            loop.run_until_complete(whole())
        finally:
            loop.close()

    return run


@pytest.mark.parametrize("after_ns", [-MS, 0, 30_000, 700_000, 3 * MS])
def test_it_comes_once_and_not_before_its_time(run, after_ns):
    async def test(calls):
        due = time.monotonic_ns() + after_ns
        calls.alarm.set(due)
        await calls.next()
        await asyncio.sleep(0.01)
        (at,) = calls.at_ns
        assert at >= due

    run(test)


def test_it_may_be_set_again_and_again(run):
    async def test(calls):
        for after_ns in (MS, 2 * MS, 10_000):
            calls.alarm.set(time.monotonic_ns() + after_ns)
            await calls.next()
        assert len(calls.at_ns) == 3

    run(test)


def test_the_last_time_counts_be_it_earlier_or_later(run):
    async def test(calls):
        calls.alarm.set(time.monotonic_ns() + LONG_NS)
        calls.alarm.set(time.monotonic_ns() + MS)
        await calls.next()

        calls.alarm.set(time.monotonic_ns() + MS)
        later = time.monotonic_ns() + 5 * MS
        calls.alarm.set(later)
        await calls.next()
        assert calls.at_ns[-1] >= later and len(calls.at_ns) == 2

    run(test)


def test_it_may_be_withdrawn(run):
    async def test(calls):
        calls.alarm.set(time.monotonic_ns() + MS)
        calls.alarm.set(0)
        await asyncio.sleep(0.01)
        assert calls.at_ns == []

        calls.alarm.set(time.monotonic_ns() + MS)
        await calls.next()

    run(test)


def test_it_may_be_set_while_it_is_called(run):
    async def test(calls):
        times = []

        def again():
            times.append(time.monotonic_ns())
            if len(times) < 3:
                alarm.set(times[-1] + 100_000)
            else:
                calls.came.set()

        alarm = Alarm(asyncio.get_running_loop(), Clock(), again)
        alarm.set(time.monotonic_ns())
        await calls.next()
        alarm.close()
        assert len(times) == 3

    run(test)


def test_a_closed_one_is_silent(run):
    async def test(calls):
        calls.alarm.set(time.monotonic_ns() + MS)
        calls.alarm.close()
        calls.alarm.close()
        calls.alarm.set(time.monotonic_ns() + MS)
        await asyncio.sleep(0.01)
        assert calls.at_ns == []

    run(test)


@pytest.mark.skipif(sys.platform != "linux", reason="descriptors are counted in /proc")
def test_only_one_that_was_set_takes_a_descriptor_and_gives_it_back(run):
    async def test(calls):
        def count():
            return len(os.listdir("/proc/self/fd"))

        before = count()
        unset, own = (Calls(asyncio.get_running_loop()) for _ in range(2))
        own.alarm.set(time.monotonic_ns() + LONG_NS)
        assert count() == before + 1
        unset.alarm.close()
        own.alarm.close()
        assert count() == before

    run(test)


def test_with_the_clock_of_a_test_it_is_a_timer_of_the_loop():
    class Loop:
        def __init__(self):
            self.timers = []

        def call_later(self, delay_s, callback):
            self.timers.append((delay_s, callback))
            return self

        def cancel(self):
            self.timers.clear()

    loop, came = Loop(), []
    alarm = Alarm(loop, Clock(lambda: 5_000), lambda: came.append(True))
    alarm.set(2_005_000)
    alarm.set(1_005_000)
    ((delay_s, callback),) = loop.timers
    assert delay_s == 0.001
    callback()
    assert came == [True]
