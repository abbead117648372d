"""Running requests, while the frontend stops."""

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


async def test_no_request_enters_after_the_stop(intake):
    await intake.drain(0)

    with pytest.raises(CoreError, match="has stopped accepting new requests"):
        intake.enter()
    assert intake.in_flight == 0


async def test_open_streams_end_after_the_last_request(intake):
    told = []
    forget = intake.on_end(lambda running, idle: told.append("gone"))
    forget()

    def end(running, idle):
        told.append(idle.kind.name)
        asyncio.get_running_loop().call_soon(leave)

    leave = intake.on_end(end)
    intake.enter()
    drained = asyncio.ensure_future(intake.drain(30))
    await asyncio.sleep(0)
    assert not told

    intake.leave()
    await asyncio.wait_for(drained, 0.5)  # as soon as the stream has ended

    assert told == ["UNAVAILABLE"]


async def test_streams_get_time_to_send_their_end_also_after_other_requests(intake):
    intake.on_end(lambda running, idle: None)()
    ended = []

    def end(running, idle):
        asyncio.get_running_loop().call_later(0.05, lambda: (ended.append(str(running)), leave()))

    leave = intake.on_end(end)
    intake.enter()

    await intake.drain(0)

    assert ended == [
        "the server is shutting down, and the request was not done within --exit-timeout-secs=0"
    ]
