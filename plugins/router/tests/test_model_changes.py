"""What a server tells its routers of changes of models: together, bounded, and not for ever."""

import asyncio
import json

import pytest
from core_router.announcing import changes
from core_router.announcing.changes import ModelChanges, Readers, event

from core.errors import unavailable


def models(data):
    return json.loads(data.partition(b"data: ")[2])["models"]


@pytest.fixture
def readers():
    return Readers()


def test_changes_that_come_together_are_one_event(readers):
    async def run():
        async def tell(models):
            readers.tell(models)

        found = ModelChanges(tell, lambda: True)
        reader = readers.join()
        for name in "abab":
            found.changed(name)
        return await anext(aiter(reader))

    assert models(asyncio.run(run())) == ["a", "b"]


def test_changes_of_another_event_loop_are_left_out(readers):
    told = []

    async def make():
        async def tell(models):
            told.append(models)

        return ModelChanges(tell, lambda: True)

    async def change(found):
        found.changed("a")
        await asyncio.sleep(5 * changes._TOGETHER_S)

    asyncio.run(change(asyncio.run(make())))

    assert not told


def test_nothing_is_told_while_nobody_reads():
    told = []

    async def run():
        async def tell(models):
            told.append(models)

        found = ModelChanges(tell, lambda: False)
        found.changed("a")
        await asyncio.sleep(5 * changes._TOGETHER_S)

    asyncio.run(run())

    assert not told


def test_a_worker_that_does_not_answer_is_no_error(caplog):
    async def run():
        async def tell(models):
            raise unavailable("worker 2 of the server does not answer")

        found = ModelChanges(tell, lambda: True)
        found.changed("a")
        await asyncio.sleep(5 * changes._TOGETHER_S)

    asyncio.run(run())

    assert not [each for each in caplog.records if each.levelname != "DEBUG"]


def test_an_event_has_no_names_if_these_are_too_many():
    assert models(event(["m" * 1000] * 10)) == ["m" * 1000] * 10
    assert models(event(["m" * 1000] * 20)) == []


def test_a_reader_gets_a_sign_of_life(readers, monkeypatch):
    monkeypatch.setattr(changes, "_BEAT_S", 0.01)

    async def run():
        return await anext(aiter(readers.join()))

    assert asyncio.run(run()) == b":\n\n"


def test_a_reader_comes_again_after_a_while(readers, monkeypatch):
    monkeypatch.setattr(changes, "_BEAT_S", 0.01)
    monkeypatch.setattr(changes, "_LONGEST_S", 0.05)

    async def run():
        return [each async for each in readers.join()]

    assert set(asyncio.run(run())) == {b":\n\n"}


def test_all_readers_end_with_the_port(readers):
    async def run():
        before = readers.join()
        reading = asyncio.create_task(anext(aiter(before), None))
        await asyncio.sleep(0)
        readers.end()
        after = [each async for each in readers.join()]
        return await reading, after

    assert asyncio.run(run()) == (None, [])


def test_a_router_that_has_left_is_told_nothing(readers):
    async def run():
        reader = readers.join()
        assert len(readers) == 1
        await reader.aclose()

    asyncio.run(run())

    assert len(readers) == 0
