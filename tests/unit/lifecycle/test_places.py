"""Places of versions that load, and those that they lend while they only wait."""

import asyncio

from core.lifecycle.places import Place


async def turns(count=20):
    for _ in range(count):
        await asyncio.sleep(0)


async def test_no_more_load_than_there_are_places():
    places, inside, most = asyncio.Semaphore(2), 0, 0

    async def load():
        nonlocal inside, most
        async with Place(places):
            inside += 1
            most = max(most, inside)
            await turns(3)
            inside -= 1

    await asyncio.gather(*(load() for _ in range(10)))

    assert most == 2 and places._value == 2


async def test_who_waits_for_another_load_lends_its_place():
    places = asyncio.Semaphore(1)
    order = []

    async def inner():
        async with Place(places):
            order.append("inner")

    async with Place(places) as place:
        async with place.lent():
            await asyncio.wait_for(inner(), 10)
        order.append("outer")
        assert places.locked()  # it is held again

    assert order == ["inner", "outer"] and places._value == 1


async def test_a_place_is_held_again_when_the_last_has_stopped_waiting():
    places = asyncio.Semaphore(1)
    first, second = asyncio.Event(), asyncio.Event()

    async def wait(place, event):
        async with place.lent():
            await event.wait()

    async with Place(places) as place:
        waits = [asyncio.ensure_future(wait(place, each)) for each in (first, second)]
        await turns()
        first.set()
        await turns()
        assert not places.locked()

        second.set()
        await asyncio.gather(*waits)
        assert places.locked()

    assert places._value == 1


async def test_a_load_that_is_over_takes_no_place_back():
    places = asyncio.Semaphore(1)
    event = asyncio.Event()

    async def wait(place):
        async with place.lent():
            await event.wait()

    async with Place(places) as place:
        waits = asyncio.ensure_future(wait(place))
        await turns()

    event.set()
    await waits
    assert places._value == 1


async def test_a_place_that_comes_when_nobody_needs_it_any_more_is_given_on():
    places = asyncio.Semaphore(1)
    event = asyncio.Event()

    async def wait(place):
        async with place.lent():
            await event.wait()

    async with Place(places) as place:
        waits = asyncio.ensure_future(wait(place))
        await turns()
        async with Place(places):  # another one loads
            event.set()
            await turns()  # we stand in the queue for our place
            again = asyncio.ensure_future(wait(place))  # and then wait for a load once more
            event.clear()
            await turns()
        await asyncio.wait_for(waits, 10)
        assert not places.locked()
        event.set()
        await asyncio.wait_for(again, 10)
        assert places.locked()

    assert places._value == 1
