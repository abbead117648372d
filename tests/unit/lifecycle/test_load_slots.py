"""Places of versions that load, and those that they lend while they only wait."""

import asyncio

from core.lifecycle.load_slots import LoadSlot


async def turns(count=20):
    for _ in range(count):
        await asyncio.sleep(0)


async def test_no_more_load_than_there_are_places():
    slots, inside, most = asyncio.Semaphore(2), 0, 0

    async def load():
        nonlocal inside, most
        async with LoadSlot(slots):
            inside += 1
            most = max(most, inside)
            await turns(3)
            inside -= 1

    await asyncio.gather(*(load() for _ in range(10)))

    assert most == 2 and slots._value == 2


async def test_a_load_that_waits_for_another_lends_its_slot():
    slots = asyncio.Semaphore(1)
    order = []

    async def inner():
        async with LoadSlot(slots):
            order.append("inner")

    async with LoadSlot(slots) as slot:
        async with slot.lent():
            await asyncio.wait_for(inner(), 10)
        order.append("outer")
        assert slots.locked()  # it is held again

    assert order == ["inner", "outer"] and slots._value == 1


async def test_a_place_is_held_again_when_the_last_has_stopped_waiting():
    slots = asyncio.Semaphore(1)
    first, second = asyncio.Event(), asyncio.Event()

    async def wait(slot, event):
        async with slot.lent():
            await event.wait()

    async with LoadSlot(slots) as slot:
        waits = [asyncio.ensure_future(wait(slot, each)) for each in (first, second)]
        await turns()
        first.set()
        await turns()
        assert not slots.locked()

        second.set()
        await asyncio.gather(*waits)
        assert slots.locked()

    assert slots._value == 1


async def test_a_load_that_is_over_takes_no_place_back():
    slots = asyncio.Semaphore(1)
    event = asyncio.Event()

    async def wait(slot):
        async with slot.lent():
            await event.wait()

    async with LoadSlot(slots) as slot:
        waits = asyncio.ensure_future(wait(slot))
        await turns()

    event.set()
    await waits
    assert slots._value == 1


async def test_an_unneeded_slot_is_passed_on():
    slots = asyncio.Semaphore(1)
    event = asyncio.Event()

    async def wait(slot):
        async with slot.lent():
            await event.wait()

    async with LoadSlot(slots) as slot:
        waits = asyncio.ensure_future(wait(slot))
        await turns()
        async with LoadSlot(slots):  # another one loads
            event.set()
            await turns()  # we stand in the queue for our slot
            again = asyncio.ensure_future(wait(slot))  # and then wait for a load once more
            event.clear()
            await turns()
        await asyncio.wait_for(waits, 10)
        assert not slots.locked()
        event.set()
        await asyncio.wait_for(again, 10)
        assert slots.locked()

    assert slots._value == 1
