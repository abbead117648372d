"""Work for a thread, and its results for the loop: in order, nothing lost, whichever side sleeps."""

import asyncio
import gc
import os
import sys
import threading
import time
import weakref
from contextvars import ContextVar

import pytest
import uvloop

from core.native.thread_queue import ThreadQueue, caller_on

opening = ContextVar("opening")


class Elsewhere(asyncio.SelectorEventLoop):
    """A loop that watches no descriptors, as on other systems."""

    def add_reader(self, *arguments):
        raise NotImplementedError


@pytest.fixture(
    params=[asyncio.new_event_loop, uvloop.new_event_loop, Elsewhere],
    ids=["asyncio", "uvloop", "elsewhere"],
)
def run(request):
    def run(test):
        async def whole():
            return await test(asyncio.get_running_loop())

        loop = request.param()
        try:
            return loop.run_until_complete(asyncio.wait_for(whole(), 60))
        finally:
            loop.run_until_complete(loop.shutdown_default_executor())
            loop.close()

    return run


class Workplace:
    """A thread that returns the square of each number; 0 is an error, None its end."""

    def __init__(self, loop):
        self.thread_queue = ThreadQueue(loop)
        self.told = []
        self.came = asyncio.Event()
        self.thread = threading.Thread(target=self.serve)
        self.thread.start()

    def serve(self):
        while (number := self.thread_queue.take()) is not None:
            error = ZeroDivisionError() if number == 0 else None
            self.thread_queue.call_on_loop(self.hear, number * number, error)

    def hear(self, square, error):
        assert threading.current_thread() is threading.main_thread()
        self.told.append((square, error))
        self.came.set()

    async def until(self, count):
        while len(self.told) < count:
            self.came.clear()
            await self.came.wait()

    async def close(self):
        self.thread_queue.put(None)
        await asyncio.get_running_loop().run_in_executor(None, self.thread.join)
        self.thread_queue.close()


def test_calls_of_a_thread_run_in_order(run):
    async def test(loop):
        place = Workplace(loop)
        for number in range(1, 1001):
            place.thread_queue.put(number)
        await place.until(1000)
        await place.close()
        return place.told

    assert run(test) == [(number * number, None) for number in range(1, 1001)]


def test_each_call_runs_even_if_no_work_follows(run):
    async def test(loop):
        place = Workplace(loop)
        for number in range(1, 201):
            place.thread_queue.put(number)
            await place.until(number)
            if number % 50 == 0:
                await asyncio.sleep(0.02)  # both sleep
        await place.close()
        return len(place.told)

    assert run(test) == 200


def test_queues_of_one_loop_do_not_mix_their_calls(run):
    async def test(loop):
        places = [Workplace(loop) for _ in range(8)]
        for number in range(1, 101):
            for factor, place in enumerate(places, 1):
                place.thread_queue.put(number * factor)
        for place in places:
            await place.until(100)
        await places[0].close()
        places[1].thread_queue.put(7)
        await places[1].until(101)
        for place in places[1:]:
            await place.close()
        return [[square for square, _ in place.told[:100]] for place in places]

    assert run(test) == [
        [(number * factor) ** 2 for number in range(1, 101)] for factor in range(1, 9)
    ]


def test_an_error_is_handed_on(run):
    async def test(loop):
        place = Workplace(loop)
        place.thread_queue.put(0)
        await place.until(1)
        await place.close()
        return place.told

    ((_, error),) = run(test)
    assert type(error) is ZeroDivisionError


def test_a_call_that_fails_does_not_affect_other_calls(run, caplog):
    async def test(loop):
        place = Workplace(loop)
        heard = place.hear

        def hear(square, error):
            if square == 4:
                raise ValueError("this one fails")
            heard(square, error)

        place.hear = hear
        for number in (1, 2, 3):
            place.thread_queue.put(number)
        await place.until(2)
        await place.close()
        return [square for square, _ in place.told]

    assert run(test) == [1, 9]
    assert "this one fails" in caplog.text


def test_calls_run_in_an_empty_context(run):
    async def test(loop):
        opening.set("of whoever opened the first model")
        place = Workplace(loop)
        seen = []
        heard = place.hear
        place.hear = lambda square, error: (seen.append(opening.get(None)), heard(square, error))
        place.thread_queue.put(1)
        await place.until(1)
        await place.close()
        return seen

    assert run(test) == [None]


def test_finished_work_is_freed(run):
    class Work:
        def __mul__(self, other):
            return self

    async def test(loop):
        place = Workplace(loop)
        work = Work()
        seen = weakref.ref(work)
        place.thread_queue.put(work)
        await place.until(1)
        place.told.clear()
        place.thread_queue.put(2)  # the thread keeps its result until the next one
        await place.until(1)
        del work
        await place.close()
        gc.collect()
        return seen()

    assert run(test) is None


@pytest.mark.skipif(not sys.platform.startswith("linux"), reason="counts descriptors")
def test_a_hundred_queues_share_one_descriptor_and_close_it(run):
    def descriptors():
        return len(os.listdir("/proc/self/fd"))

    async def test(loop):
        before = descriptors()
        relays = [ThreadQueue(loop) for _ in range(100)]
        taken = descriptors() - before
        for thread_queue in relays:
            thread_queue.close()
        return taken

    before = descriptors()
    assert run(test) <= 1
    gc.collect()
    assert descriptors() <= before


def test_closing_a_queue_twice_does_not_affect_others(run):
    async def test(loop):
        closed = ThreadQueue(loop)
        closed.close()
        closed.close()
        place = Workplace(loop)
        place.thread_queue.put(3)
        await place.until(1)
        await place.close()
        return [square for square, _ in place.told]

    assert run(test) == [9]


def test_a_waiting_thread_uses_no_cpu_time(run):
    async def test(loop):
        place = Workplace(loop)
        await asyncio.sleep(0.05)
        begin = time.process_time()
        await asyncio.sleep(0.3)
        spent = time.process_time() - begin
        await place.close()
        return spent

    assert run(test) < 0.1


class TestCaller:
    """caller_on: calls of any thread, without a queue."""

    def test_every_call_runs_once_and_in_order_of_its_thread(self, run):
        async def test(loop):
            call, got, ended = caller_on(loop), [], asyncio.Event()

            def work(name):
                for number in range(500):
                    call(lambda at=number: got.append((name, at)))

            threads = [threading.Thread(target=work, args=(name,)) for name in "abc"]
            for each in threads:
                each.start()
            await asyncio.to_thread(lambda: [each.join() for each in threads])
            call(ended.set)
            await ended.wait()
            await asyncio.sleep(0.01)
            assert len(got) == 1500
            for name in "abc":
                assert [at for found, at in got if found == name] == list(range(500))

        run(test)

    def test_it_wakes_a_loop_that_sleeps(self, run):
        async def test(loop):
            call, ended = caller_on(loop), asyncio.Event()
            thread = threading.Thread(target=lambda: (time.sleep(0.05), call(ended.set)))
            thread.start()
            await asyncio.wait_for(ended.wait(), 10)
            thread.join()

        run(test)

    def test_a_call_of_the_loop_itself_runs_in_its_next_turn(self, run):
        async def test(loop):
            call, got = caller_on(loop), []
            call(lambda: got.append("call"))
            loop.call_soon(got.append, "next")
            assert got == []
            await asyncio.sleep(0)
            await asyncio.sleep(0)
            assert got == ["call", "next"]

        run(test)

    def test_a_call_that_fails_does_not_stop_others(self, run, caplog):
        async def test(loop):
            loop.set_exception_handler(lambda loop, context: None)
            call, ended = caller_on(loop), asyncio.Event()

            def fail():
                raise ValueError("no")

            await asyncio.to_thread(lambda: (call(fail), call(ended.set)))
            await asyncio.wait_for(ended.wait(), 10)

        run(test)
