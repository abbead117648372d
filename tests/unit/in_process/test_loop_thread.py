"""Calls from threads to event loops."""

import asyncio
import threading

import pytest

import core
from frontends.in_process.loop_thread import CallQueue, LoopThread, running_loop_queue


class Loop:
    """Counts wake-ups; `turn` runs the scheduled calls."""

    def __init__(self):
        self.waiting = []
        self.wakeups = 0

    def call_soon_threadsafe(self, call):
        self.wakeups += 1
        self.waiting.append(call)

    def call_soon(self, call):
        self.waiting.append(call)

    def is_closed(self):
        return False

    def turn(self):
        waiting, self.waiting = self.waiting, []
        for call in waiting:
            call()


@pytest.fixture
def thread():
    made = LoopThread("test")
    yield made
    made.end()


def test_calls_that_wait_together_wake_the_loop_once():
    loop, done = Loop(), []
    calls = CallQueue(loop)

    for number in range(5):
        calls.add(lambda number=number: done.append(number))
    loop.turn()

    assert done == [0, 1, 2, 3, 4]
    assert loop.wakeups == 1


def test_a_queue_refuses_every_call_after_its_loop_was_closed():
    loop, done = asyncio.new_event_loop(), []
    calls = CallQueue(loop)
    loop.close()

    for _ in range(2):
        with pytest.raises(core.CoreError, match="the server is stopped"):
            calls.add(lambda: done.append(1))
    calls.close("")

    assert done == []


def test_a_call_after_a_delivery_wakes_the_loop_again():
    loop, done = Loop(), []
    calls = CallQueue(loop)
    calls.add(lambda: done.append(1))
    loop.turn()

    calls.add(lambda: done.append(2))
    loop.turn()

    assert done == [1, 2]
    assert loop.wakeups == 2


def test_calls_that_add_calls_leave_the_loop_time_for_other_work():
    loop = Loop()
    calls = CallQueue(loop)

    def again():
        calls.add(again)

    calls.add(again)

    loop.turn()  # comes to an end, and leaves the next for the next turn
    assert len(loop.waiting) == 1


def test_a_closed_queue_runs_its_calls_and_refuses_new_ones():
    loop, done = Loop(), []
    calls = CallQueue(loop)
    calls.add(lambda: done.append(1))

    calls.close("it is over")

    assert done == [1]
    with pytest.raises(core.CoreError, match="it is over"):
        calls.add(lambda: done.append(2))
    loop.turn()
    assert done == [1]


def test_no_call_of_many_threads_is_lost(thread):
    done = []

    def post(number):
        for _ in range(500):
            thread.add(lambda: done.append(number))

    threads = [threading.Thread(target=post, args=[number]) for number in range(8)]
    for each in threads:
        each.start()
    for each in threads:
        each.join()

    async def nothing():
        await asyncio.sleep(0)

    while thread.run(nothing()) or len(done) < 4000:
        pass
    assert sorted(done) == sorted(list(range(8)) * 500)


def test_a_call_returns_or_raises_like_its_coroutine(thread):
    async def give():
        return threading.current_thread().name

    async def fail():
        raise KeyError("x")

    assert thread.run(give()) == "test"
    with pytest.raises(KeyError):
        thread.run(fail())


def test_waiting_for_itself_is_refused(thread):
    async def nothing():
        pass

    async def inside():
        thread.run(nothing())

    with pytest.raises(core.CoreError, match="own thread"):
        thread.run(inside())


def test_tasks_that_are_left_are_cancelled_at_the_end():
    thread, seen = LoopThread("test"), []

    async def endless():
        try:
            await asyncio.Event().wait()
        finally:
            seen.append("cancelled")

    async def begin():
        thread.kept = asyncio.ensure_future(endless())
        await asyncio.sleep(0)

    thread.run(begin())
    thread.end()

    assert seen == ["cancelled"]


async def test_a_loop_has_one_queue():
    assert running_loop_queue() is running_loop_queue()


def test_another_loop_has_another_queue():
    async def mine():
        return running_loop_queue()

    assert asyncio.run(mine()) is not asyncio.run(mine())
