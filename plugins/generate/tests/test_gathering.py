"""Gathering: what reaches an idle engine together begins together, and nothing waits for more."""

import asyncio
import threading

import pytest
from core_generate.gathering import QUIET_TURNS, Gathering

pytestmark = pytest.mark.asyncio


@pytest.fixture
def passed():
    return []


@pytest.fixture(autouse=True)
def patient(monkeypatch):
    monkeypatch.setattr("core_generate.gathering.MOST_S", 60.0)


async def turns(number):
    for _ in range(number):
        await asyncio.sleep(0)


async def test_items_of_turns_in_a_row_pass_together(passed):
    gathering = Gathering(lambda item: passed.append((item, len(arrived))))
    arrived = []
    for item in range(4):
        arrived.append(item)
        gathering.add(item, idle=item == 0)
        await turns(2)

    await turns(QUIET_TURNS)

    assert passed == [(item, 4) for item in range(4)]


async def test_one_item_waits_for_a_few_turns_only(passed):
    gathering = Gathering(passed.append)
    gathering.add("a", idle=True)
    await turns(QUIET_TURNS - 1)
    assert passed == []

    await turns(1)

    assert passed == ["a"]


async def test_an_engine_that_works_gets_items_at_once(passed):
    gathering = Gathering(passed.append)

    gathering.add("a", idle=False)

    assert passed == ["a"]


async def test_nothing_is_held_for_long(passed, monkeypatch):
    monkeypatch.setattr("core_generate.gathering.MOST_S", 0.0)
    gathering = Gathering(passed.append)
    gathering.add("a", idle=True)
    gathering.add("b", idle=False)

    await turns(1)

    assert passed == ["a", "b"]


async def test_items_of_other_threads_pass_at_once(passed):
    gathering = Gathering(passed.append)
    thread = threading.Thread(target=gathering.add, args=("a", True))
    thread.start()
    thread.join()

    assert passed == ["a"]


async def test_what_was_held_when_its_loop_ended_passes_with_the_next_item(passed):
    gathering = Gathering(passed.append)

    async def add():
        gathering.add("a", idle=True)

    def end_early():
        loop = asyncio.new_event_loop()
        loop.run_until_complete(add())
        loop.close()

    await asyncio.to_thread(end_early)
    assert passed == []

    gathering.add("b", idle=False)
    await turns(QUIET_TURNS)

    assert passed == ["a", "b"]
