"""Control areas that plugins and frontends add: their operations reach all workers, as those of core."""

import os

import pytest

import core
from core import plugins
from core.control import Area, Changed, change, here, question
from core.errors import CoreError, Kind, invalid
from frontends.shared.memory import MemoryControl


class NoteControl(Area, name="note"):
    """Keeps texts by name, each in all workers. A worker with `strict` refuses the text "wrong"."""

    strict = False

    def __init__(self):
        self.notes = {}

    @change("logging", subject="note {name}", otherwise="the others have their note of before")
    async def put(self, name: str, text: str) -> Changed:
        """Keep a note; return the number of notes."""
        if self.strict and text == "wrong":
            raise invalid("no such text")
        before = self.notes.get(name)
        self.notes[name] = text

        def undo():
            if before is None:
                del self.notes[name]
            else:
                self.notes[name] = before

        return Changed(len(self.notes), undo=undo)

    @change("logging", subject="note {name}", otherwise="the others have removed it", forgets=True)
    async def remove(self, name: str) -> None:
        """Remove a note."""
        self.notes.pop(name, None)

    @question("logging", lambda results, arguments: sum(results.all()))
    async def count(self) -> int:
        """Return the number of notes in all workers."""
        return len(self.notes)

    @here("logging")
    def all(self):
        """Return the notes of this worker."""
        return dict(self.notes)


class NotePlugin:
    @core.hookimpl
    def core_server_starting(self, server):
        server.control.add(NoteControl())


@pytest.fixture
def notes():
    """Add the area to each server that starts. A function (worker) that returns the worker's area."""
    plugin = NotePlugin()
    plugins.hooks().register(plugin, "notes")
    yield lambda worker: worker.server.control.areas["note"]
    plugins.hooks().unregister(plugin)


async def test_a_change_is_in_all_workers(start, notes):
    fleet = await start()
    one, two = map(notes, fleet.workers.values())

    assert await one.put("a", "x") == 1

    assert one.all() == two.all() == {"a": "x"}
    assert await two.count() == 2
    await two.remove("a")
    assert one.all() == two.all() == {}


async def test_a_change_that_one_worker_refuses_is_undone_in_the_others(start, notes):
    fleet = await start()
    one, two = map(notes, fleet.workers.values())
    await one.put("a", "x")
    two.strict = True

    with pytest.raises(CoreError) as caught:
        await one.put("a", "wrong")

    assert caught.value.message == "no such text (worker 2; the others have their note of before)"
    await fleet.control(1).repository.index()  # the message that undoes the change comes before
    assert one.all() == two.all() == {"a": "x"}


async def test_a_worker_that_starts_later_repeats_the_changes(start, notes):
    fleet = await start()
    one = notes(fleet.workers[1])
    for name in ("a", "b"):
        await one.put(name, "x")
    await one.put("a", "y")
    await one.remove("b")
    fleet.die(2)
    await fleet.workers[2].server.stop(5)

    operation = fleet.exchange.begin({2})
    worker = await fleet.connect(2, operation.number)
    await fleet.begin(2)
    await fleet.exchange.catch_up(2)

    assert notes(worker).all() == {"a": "y"}


@pytest.fixture
def region():
    name = f"core_test_fleet_{os.getpid()}"
    with open(f"/dev/shm/{name}", "wb") as file:
        file.truncate(4096)
    yield f"/{name}"
    os.unlink(f"/dev/shm/{name}")


async def test_a_region_is_registered_and_forgotten_everywhere(start, region):
    fleet = await start(allow_client_shm=True)
    one, two = [MemoryControl.of(worker.server) for worker in fleet.workers.values()]

    await one.register("r", region, 0, 4096)

    assert [len(each.status()) for each in (one, two)] == [1, 1]
    await two.unregister("r")
    assert [len(each.status()) for each in (one, two)] == [0, 0]


async def test_a_region_that_one_worker_cannot_map_is_forgotten_by_the_others(start, region):
    fleet = await start(allow_client_shm=True)
    one, two = [MemoryControl.of(worker.server) for worker in fleet.workers.values()]
    two.regions.register("r", region, 0, 4096)

    with pytest.raises(CoreError) as caught:
        await one.register("r", region, 0, 4096)

    assert caught.value.kind is Kind.ALREADY_EXISTS
    assert "worker 2" in caught.value.message
    await fleet.control(1).repository.index()  # the message that undoes the change comes before
    assert one.status() == []


async def test_names_of_regions_that_differ_in_blanks_are_two_things(start, region):
    fleet = await start(allow_client_shm=True)
    one, _ = [MemoryControl.of(worker.server) for worker in fleet.workers.values()]
    for name in ("r", "r "):
        await one.register(name, region, 0, 4096)

    await one.unregister("r ")

    assert [entry.method for entry in fleet.exchange.ledger.entries()] == ["memory.register"]
    assert list(fleet.exchange.ledger._entries) == ["memory r"]
    await one.unregister()
    assert list(fleet.exchange.ledger.entries()) == []
