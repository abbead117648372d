"""The budget, with a manager that is only a table, in virtual time."""

import asyncio
from pathlib import Path
from types import SimpleNamespace

import pytest
from core_memory_budget.account import Account, Entry, Need
from core_memory_budget.idle import IdleTimers
from core_memory_budget.measure import Meter
from core_memory_budget.measuring import Measuring
from core_memory_budget.metrics import MemoryMetrics
from core_memory_budget.options import ModelMemory
from core_memory_budget.reservations import MemoryRefused, Reservations

from core.config import ModelConfig


class Version(SimpleNamespace):
    __hash__ = object.__hash__


class Table:
    """Models by name; an unload takes `drain_s` seconds. `held` are used by another operation."""

    def __init__(self, account):
        self.account, self.drain_s, self.unloaded, self.held = account, 0.0, [], set()

    def versions(self):
        return [each.version for each in self.account.entries if each.version is not None]

    async def rest(self, key, reason):
        if key in self.held:
            return False
        self.unloaded.append(key)
        await asyncio.sleep(self.drain_s)
        for entry in [each for each in self.account.entries if each.key == key]:
            self.account.drop(entry)
        return True


class World:
    """A budget of 100 bytes on the host and 50 on gpu0."""

    def __init__(self, wait_s=60.0):
        loop = asyncio.get_running_loop()
        self.account, self.pinned, self.metrics = Account(), set(), MemoryMetrics()
        self.manager = Table(self.account)
        self.reservations = Reservations(
            {"host": 100, "gpu0": 50},
            self.account,
            self.manager,
            self.metrics,
            Measuring(Meter(proc=Path("/nothing")), loop, on=True),
            lambda: self.pinned,
            set,
            wait_s,
        )
        self.reservations._now = loop.time

    def loaded(self, key, size, used=0.0, busy=0, **settings):
        """Add a loaded model; `steps` makes it an ensemble."""
        memory = ModelMemory(**{"on_request": True, **settings})
        version = Version(
            key=key,
            state="READY",
            in_flight=busy,
            config=ModelConfig(),
            source=SimpleNamespace(steps=()),
            statistics=SimpleNamespace(last_inference_ms=used * 1e3),
        )
        sizes = size if isinstance(size, dict) else {"host": size}
        entry = Entry(key, 1, sizes, memory, version=version, state="loaded")
        if memory.pin:
            self.pinned.add(key)
        self.account.entries.append(entry)
        return entry

    async def load(self, key, size, peak=None, **settings):
        sizes = size if isinstance(size, dict) else {"host": size}
        peaks = sizes if peak is None else {"host": peak}
        entry = Entry(key, 1, {}, ModelMemory(**{"on_request": True, **settings}))
        self.made_room = await self.reservations.reserve([entry], [Need(peaks, sizes)])
        return entry


async def test_a_load_that_fits_unloads_nothing():
    world = World()
    world.loaded("a", 60)

    await world.load("b", 40)

    assert world.manager.unloaded == world.made_room == []
    assert world.account.used() == {"host": 100}


async def test_a_load_that_does_not_fit_waits_for_the_unload_of_the_least_recently_used():
    world = World()
    world.manager.drain_s = 3
    for number, key in enumerate("abc"):
        world.loaded(key, 30, used=10 - number)
    start = asyncio.get_running_loop().time()

    await world.load("d", 35)

    assert world.manager.unloaded == world.made_room == ["c"]
    assert asyncio.get_running_loop().time() - start == 3
    assert world.metrics.unloads == {("c", "memory"): 1}


async def test_each_device_has_a_budget_of_its_own():
    world = World()
    world.loaded("host", 90, used=1)
    world.loaded("gpu", {"gpu0": 40}, used=2)

    await world.load("new", {"gpu0": 20})

    assert world.manager.unloaded == ["gpu"]


async def test_a_model_larger_than_what_pinned_ones_leave_is_refused_at_once_with_the_numbers():
    world = World()
    world.loaded("pinned", 70, pin=True)
    world.loaded("other", 10)
    start = asyncio.get_running_loop().time()

    with pytest.raises(MemoryRefused) as error:
        await world.load("large", 40)

    assert asyncio.get_running_loop().time() == start
    assert "needs 40 bytes, the budget is 100 bytes, 70 bytes of it stays" in error.value.message
    assert "pinned 70 bytes" in error.value.message
    assert world.manager.unloaded == []
    assert world.metrics.refusals == {"large": 1}


async def test_a_model_that_is_not_loaded_on_request_is_never_unloaded_for_another():
    world = World()
    world.loaded("fixed", 70, on_request=False)

    with pytest.raises(MemoryRefused):
        await world.load("large", 40)


async def test_loads_that_belong_together_get_memory_for_all_or_for_none():
    world = World()
    world.loaded("pinned", 50, pin=True)
    entries = [Entry(key, 1, {}, ModelMemory(on_request=True)) for key in "xy"]

    with pytest.raises(MemoryRefused):
        await world.reservations.reserve(entries, [Need({"host": 30}, {"host": 30})] * 2)

    assert world.account.used() == {"host": 50}


async def test_a_peak_that_is_too_large_gets_what_there_can_be():
    world = World()
    world.loaded("pinned", 20, pin=True)
    world.loaded("other", 30)

    entry = await world.load("m", 40, peak=300)

    assert world.manager.unloaded == ["other"]
    assert entry.bytes == {"host": 80}


async def test_loads_that_belong_together_share_what_there_is_beyond_what_they_keep():
    world = World()
    entries = [Entry(key, 1, {}, ModelMemory(on_request=True)) for key in "xy"]
    needs = [Need({"host": 900}, {"host": 50}), Need({"host": 45}, {"host": 45})]

    await world.reservations.reserve(entries, needs)

    assert [each.bytes["host"] for each in entries] == [55, 45]


async def test_while_a_load_unloads_others_wait_their_turn_and_the_budget_holds():
    world = World()
    world.manager.drain_s = 1
    for number in range(10):
        world.loaded(f"old{number}", 10, used=number)
    most = []

    async def watch():
        while True:
            most.append(world.account.used()["host"])
            await asyncio.sleep(0.1)

    watching = asyncio.create_task(watch())
    await asyncio.gather(*(world.load(f"new{number}", 25) for number in range(3)))
    watching.cancel()

    assert max(most) <= 100
    assert world.account.used()["host"] <= 100


async def test_a_model_that_another_operation_uses_is_passed_over_until_it_is_free():
    world = World()
    world.loaded("a", 60)
    world.manager.held.add("a")
    asyncio.get_running_loop().call_later(2, world.manager.held.clear)

    await world.load("b", 60)

    assert world.manager.unloaded == ["a"]


async def test_a_load_waits_no_longer_than_allowed_for_a_drain_that_does_not_end():
    world = World(wait_s=5)
    world.manager.drain_s = 1000
    world.loaded("stuck", 60, busy=1)
    start = asyncio.get_running_loop().time()

    with pytest.raises(MemoryRefused):
        await world.load("b", 60)

    assert asyncio.get_running_loop().time() - start == pytest.approx(5, abs=0.1)


async def test_a_model_with_sequences_stays_until_they_are_idle():
    world = World()
    loop = asyncio.get_running_loop()
    entry = world.loaded("s", 60, used=loop.time())
    batching = entry.version.config.sequence_batching
    batching.max_sequence_idle_microseconds = 4_000_000
    start = loop.time()

    await world.load("b", 60)

    assert loop.time() - start == pytest.approx(4, abs=0.1)


# more is loaded than the budget holds --------------------------------------------------


async def test_a_model_that_takes_more_than_was_reserved_unloads_the_least_recently_used_ones():
    world = World()
    for number, key in enumerate("abc"):
        world.loaded(key, 30, used=number)
    world.account.entries[-1].bytes["host"] = 70

    assert not await world.reservations.unload_excess()

    assert world.manager.unloaded == ["a"]
    assert world.account.used() == {"host": 100}


async def test_the_excess_of_a_device_unloads_models_of_this_device():
    world = World()
    world.loaded("host", 90)
    world.loaded("gpu", {"gpu0": 30}, used=1)
    world.loaded("larger", {"gpu0": 40}, used=2)

    assert not await world.reservations.unload_excess()

    assert world.manager.unloaded == ["gpu"]


async def test_what_fits_stays():
    world = World()
    world.loaded("a", {"host": 100, "gpu0": 50})

    assert not await world.reservations.unload_excess()

    assert world.manager.unloaded == []


async def test_an_excess_of_models_that_stay_unloads_the_others_and_is_told_once(caplog):
    world = World()
    world.loaded("pinned", 120, pin=True)
    world.loaded("other", 30)

    assert await world.reservations.unload_excess()
    assert await world.reservations.unload_excess()

    assert world.manager.unloaded == ["other"]
    (told,) = [each.getMessage() for each in caplog.records if each.levelname == "WARNING"]
    assert "20 bytes more of host than --memory-budget allows" in told
    assert "pinned 120 bytes" in told


# idle --------------------------------------------------------------------------------


async def test_an_idle_model_with_sequences_stays_while_a_client_may_continue_one():
    world = World()
    loop = asyncio.get_running_loop()
    version = world.loaded("s", 60).version
    version.config.sequence_batching.max_sequence_idle_microseconds = 60_000_000
    idle = IdleTimers(world.manager, world.reservations, loop, loop.time)
    idle.watch(version, 5)

    await asyncio.sleep(50)
    version.statistics.last_inference_ms = loop.time() * 1e3  # the client continues after a pause
    await asyncio.sleep(59)
    assert world.manager.unloaded == []

    await asyncio.sleep(2)
    assert world.manager.unloaded == ["s"]


async def test_an_idle_model_without_sequences_goes_after_its_own_time():
    world = World()
    loop = asyncio.get_running_loop()
    idle = IdleTimers(world.manager, world.reservations, loop, loop.time)
    idle.watch(world.loaded("m", 60).version, 5)

    await asyncio.sleep(5.5)

    assert world.manager.unloaded == ["m"]
