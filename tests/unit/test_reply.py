"""Reply: one object for one answer and for many."""

import asyncio
import weakref

import pytest

from core.errors import CoreError, Kind, internal
from core.request import InferenceRequest
from core.response import InferenceResponse, Reply


def reply():
    return Reply(InferenceRequest("m", {}))


def answer(number=1):
    return InferenceResponse("m", number, [])


async def test_await_returns_a_response_that_arrived_before():
    found = reply()
    sent = answer()
    found.send(sent)

    assert await found is sent


async def test_await_returns_a_response_that_arrives_later():
    found, sent = reply(), answer()
    asyncio.get_running_loop().call_soon(found.send, sent)

    assert await found is sent


async def test_await_raises_the_error():
    found = reply()
    found.fail(internal("broken"))

    with pytest.raises(CoreError, match="broken"):
        await found


@pytest.mark.parametrize("count", [0, 2])
async def test_await_raises_unless_there_is_exactly_one_response(count):
    found = reply()
    for number in range(count):
        found.send(answer(number), final=False)
    found.send(None, final=True)

    with pytest.raises(CoreError, match=f"expected a single response, got {count}") as error:
        await found
    assert error.value.kind is Kind.INTERNAL


async def test_iteration_yields_every_response_and_ends():
    found = reply()
    loop = asyncio.get_running_loop()
    found.send(answer(1), final=False)
    loop.call_soon(found.send, answer(2), False)
    loop.call_later(0, found.send, None, True)

    assert [item.model_version async for item in found] == [1, 2]


async def test_iteration_continues_after_an_error_that_is_not_final():
    found = reply()
    found.send(internal("first"), final=False)
    found.send(answer(2), final=True)

    items = [item async for item in found]

    assert isinstance(items[0], CoreError)
    assert items[1].model_version == 2


async def test_items_after_the_final_one_are_dropped():
    found, seen = reply(), []
    found.fail(internal("cancelled"))
    found.send(answer())
    found.listen(lambda item, final: seen.append((str(item), final)))

    assert seen == [("cancelled", True)]


async def test_cancelling_an_await_cancels_the_request():
    found = reply()
    task = asyncio.ensure_future(found._only())
    await asyncio.sleep(0)
    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
    assert found.request.cancelled


async def test_leaving_an_iteration_early_cancels_the_request():
    found = reply()
    found.send(answer(1), final=False)

    stream = found.__aiter__()
    await anext(stream)
    await stream.aclose()

    assert found.request.cancelled


async def test_leaving_an_iteration_at_its_end_does_not_cancel():
    found = reply()
    found.send(answer(1), final=True)

    assert len([item async for item in found]) == 1
    assert not found.request.cancelled


@pytest.mark.parametrize("before", [0, 1, 2, 3])
def test_cancel_notifies_each_listener_once(before):
    request, told = InferenceRequest("m", {}), []
    for i in range(before):
        request.on_cancel(lambda i=i: told.append(i))

    request.cancel()
    request.cancel()
    request.on_cancel(lambda: told.append("late"))

    assert told == [*range(before), "late"]


def test_an_item_sent_while_the_first_is_received_comes_second():
    found, heard = reply(), []

    def listener(item, final):
        heard.append((item, final))
        if len(heard) == 1:
            found.send(None)

    error = internal("not the end")
    found.send(error, False)
    found.listen(listener)

    assert heard == [(error, False), (None, True)]


def test_a_listener_is_dropped_after_the_final_item():
    class Heard:
        def __call__(self, item, final):
            pass

    for early in (True, False):
        answered = reply()
        heard = Heard()
        gone = weakref.ref(heard)
        if early:
            answered.send(None)
        answered.listen(heard)
        del heard
        if not early:
            assert gone() is not None
            answered.send(None)
        assert gone() is None
