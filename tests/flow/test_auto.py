"""Where an instance with `placement = "auto"` executes: times decide, and here they are given."""

import asyncio
import threading

import numpy as np
import pytest

import core
from core.native.thread_queue import ThreadQueue
from core.pipeline.instances import auto, runner
from core.request import InferenceRequest
from core.tensor import Tensor


class Timed(core.ModelInstance):
    """Each execution takes the number of microseconds in the request."""

    placement = "auto"

    def open(self):
        self.places = []

    def execute(self, batch):
        self.loop.now_s += float(batch["x"][0, 0]) / 1e6
        self.places.append(threading.current_thread() is threading.main_thread())
        self.model.recorder.batches.append(self.places[-1])
        return {"y": batch["x"]}


@pytest.fixture
def ask(serve):
    """Ask a new model `count` times for executions of `took_us`; where they ran: True on the loop."""
    chains = []

    async def ask(took_us, count=1, instance=Timed):
        if not chains:
            chains.append(await serve(instance))
        recorder = chains[0].recorder
        before = len(recorder.batches)
        for _ in range(count):
            tensor = Tensor.of("x", np.array([[took_us]], np.float32))
            await chains[0].handler(InferenceRequest("m", {"x": tensor}))
        return recorder.batches[before:]

    return ask


SHORT = auto.SHORT_NS / 1000 / 2
LONG = auto.SHORT_NS / 1000 * 3


async def test_an_instance_begins_on_its_thread(ask):
    assert await ask(SHORT) == [False]


async def test_short_executions_move_to_the_loop(ask):
    places = await ask(SHORT, auto.TRIAL + 5)

    assert places == [False] * auto.TRIAL + [True] * 5


async def test_long_executions_stay_on_the_thread(ask):
    assert set(await ask(LONG, 3 * auto.TRIAL)) == {False}


async def test_one_very_long_execution_ends_the_stay_on_the_loop(ask):
    await ask(SHORT, auto.TRIAL)

    assert await ask(auto.TOO_LONG_NS / 1000 + 1) == [True]
    assert await ask(SHORT) == [False]


async def test_executions_that_become_long_go_back_to_the_thread(ask):
    await ask(SHORT, auto.TRIAL)

    places = await ask(LONG, 100)

    assert places[0] is True
    assert places[-1] is False


async def test_after_each_return_the_instance_stays_on_its_thread_twice_as_long(ask):
    await ask(SHORT, auto.TRIAL)
    await ask(auto.TOO_LONG_NS / 1000 + 1)

    places = await ask(SHORT, 2 * auto.TRIAL + 1)

    assert places == [False] * 2 * auto.TRIAL + [True]


async def test_a_single_long_execution_among_short_ones_does_not_hide_them(ask):
    await ask(LONG)

    places = await ask(SHORT, auto.TRIAL)

    assert places == [False] * (auto.TRIAL - 1) + [True]


async def test_an_instance_may_choose_its_thread_in_open(ask):
    class Settled(Timed):
        def open(self):
            super().open()
            self.placement = "thread"

    assert set(await ask(SHORT, 3 * auto.TRIAL, Settled)) == {False}


@pytest.fixture
def way(monkeypatch):
    """Sets the microseconds that it takes to the thread."""
    way_us = 0.0

    class Way(ThreadQueue):
        def __init__(self, loop):
            super().__init__(loop)
            self.loop = loop

        def put(self, work):
            self.loop.now_s += way_us / 1e6
            super().put(work)

    def takes(us):
        nonlocal way_us
        way_us = us
        monkeypatch.setattr(runner, "ThreadQueue", Way)

    return takes


@pytest.mark.skipif(auto.ONE_PROCESSOR, reason="the loop may be held for longer than any way takes")
@pytest.mark.parametrize("way_us", [10, auto.MOST_SHORT_NS / 1000])
async def test_an_execution_shorter_than_the_thread_switch_moves_to_the_loop(ask, way, way_us):
    way(way_us)
    took_us = (auto.SHORT_NS + auto.MOST_SHORT_NS) / 2000

    places = await ask(took_us, auto.TRIAL + 100)

    assert set(places[auto.TRIAL :]) == {took_us < way_us}


async def test_the_loop_is_not_blocked_longer_however_slow_the_switch_is(ask, way):
    way(1e6)
    longest_us = max(auto.MOST_SHORT_NS, auto.SHORT_NS) / 1000

    assert set(await ask(longest_us + 1, 3 * auto.TRIAL)) == {False}


async def test_a_medium_execution_has_a_loop_iteration_for_itself(ask, way):
    turn, loop = 0, asyncio.get_running_loop()

    def next_turn():
        nonlocal turn
        turn += 1
        loop.call_soon(next_turn)

    class Noting(Timed):
        def execute(self, batch):
            turns.append(turn)
            return super().execute(batch)

    turns = []
    way(auto.MOST_SHORT_NS / 1000)
    took_us = auto.WHOLE_TURN_NS / 1000 + 20
    await ask(took_us, auto.TRIAL, Noting)
    next_turn()

    places = await asyncio.gather(*(ask(took_us) for _ in range(5)))

    assert all(all(each) for each in places)
    assert len(set(turns[-5:])) == 5
