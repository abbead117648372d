"""What is in flight, while the frontend stops."""

import asyncio

import pytest

from core.errors import CoreError


async def test_a_stop_waits_for_the_last_request(intake):
    intake.enter()
    intake.enter()
    drained = asyncio.ensure_future(intake.drain(30))

    await asyncio.sleep(0)
    intake.leave()
    await asyncio.sleep(0)
    assert not drained.done()

    intake.leave()
    await drained


async def test_a_stop_waits_no_longer_than_its_time(intake):
    intake.enter()

    await intake.drain(0.001)

    assert intake.in_flight == 1


async def test_nothing_enters_while_it_stops(intake):
    await intake.drain(0)

    with pytest.raises(CoreError, match="has stopped accepting new requests"):
        intake.enter()
    assert intake.in_flight == 0


async def test_open_streams_are_told_after_the_last_request(intake):
    told = []
    intake.on_end(lambda error: told.append(error.kind.name))
    forget = intake.on_end(lambda error: told.append("gone"))
    forget()
    intake.enter()
    drained = asyncio.ensure_future(intake.drain(30))
    await asyncio.sleep(0)
    assert not told

    intake.leave()
    await drained

    assert told == ["UNAVAILABLE"]
