"""Backlog and Pace alone: pauses, resumes and waits."""

import asyncio
import gc
import weakref

import numpy as np
import pytest

from core.backlog import (
    EACH_ANSWERS,
    EACH_BYTES,
    LIMIT_ANSWERS,
    LIMIT_BYTES,
    MOST_ANSWERS,
    MOST_BYTES,
    Backlog,
    Pace,
)
from core.errors import CoreError
from core.request import InferenceRequest
from core.response import InferenceResponse, Reply
from core.tensor import Tensor


@pytest.fixture
def request_():
    return InferenceRequest("m", {})


@pytest.fixture
def errors():
    return []


@pytest.fixture
async def backlog(request_, errors):
    found = Backlog(errors.append)
    found.enter(request_)
    yield found
    found.close()


async def test_a_request_is_paused_above_the_response_limit_and_resumes_at_half(backlog, request_):
    for _ in range(MOST_ANSWERS):
        backlog.add(1)
    assert not request_.paused

    backlog.add(1)
    assert request_.paused

    for _ in range(MOST_ANSWERS // 2):
        backlog.take(1)
    assert request_.paused
    backlog.take(1)
    assert not request_.paused


async def test_responses_that_were_sent_together_are_uncounted_together(backlog, request_):
    for _ in range(MOST_ANSWERS + 1):
        backlog.add(1)

    backlog.take(MOST_ANSWERS // 2, MOST_ANSWERS // 2)
    assert request_.paused
    backlog.take(1, 1)
    assert not request_.paused


async def test_a_request_is_paused_above_the_byte_limit(backlog, request_):
    backlog.add(MOST_BYTES)
    assert not request_.paused

    backlog.add(1)
    assert request_.paused

    backlog.take(MOST_BYTES)
    assert not request_.paused


async def test_a_request_that_enters_a_full_backlog_is_paused_at_once(backlog):
    backlog.add(MOST_BYTES + 1)
    other = InferenceRequest("m", {})

    backlog.enter(other)

    assert other.paused


async def test_closing_resumes_every_request(backlog, request_):
    backlog.add(MOST_BYTES + 1)

    backlog.close()

    assert not request_.paused


async def test_one_response_of_any_size_may_wait(backlog, errors):
    backlog.add(2 * LIMIT_BYTES)

    assert not errors


@pytest.mark.parametrize(("count", "size"), [(LIMIT_ANSWERS + 1, 0), (2, LIMIT_BYTES)])
async def test_a_request_whose_model_ignores_the_pause_is_cancelled(backlog, errors, count, size):
    for _ in range(count):
        backlog.add(size)

    (error,) = errors
    assert f"{count} responses of {count * size} bytes wait for it" in error.message


async def test_a_step_of_an_ensemble_waits_for_the_clients_request(request_):
    step = InferenceRequest("step", {})
    step.parent = request_
    free = []
    request_.pause()

    step.when_free(lambda: free.append(1))
    assert not free

    request_.resume()
    assert free


@pytest.mark.parametrize("end", ["cancel", "finish"])
async def test_a_request_that_is_over_is_not_paused(request_, end):
    free = []
    request_.pause()
    request_.when_free(lambda: free.append(1))

    getattr(request_, end)()
    assert free

    request_.pause()
    assert not request_.paused


async def test_responses_after_the_reader_has_left_are_dropped():
    reply = Reply(InferenceRequest("m", {}))
    answers = aiter(reply)
    reply.send(InferenceResponse("m", 1, []), False)
    await anext(answers)
    await answers.aclose()
    big = InferenceResponse("m", 1, [Tensor.of("y", np.zeros(MOST_BYTES, np.uint8))])

    reply.send(big, False)
    reply.send(big, False)

    assert not reply.request.paused


async def test_a_stream_that_overflows_ends_with_the_error():
    reply = Reply(InferenceRequest("m", {}))
    answers = aiter(reply)
    answer = InferenceResponse("m", 1, [])
    reply.send(answer, False)
    await anext(answers)

    for _ in range(LIMIT_ANSWERS + 10):
        reply.send(answer, False)

    (error,) = [item async for item in answers]
    assert isinstance(error, CoreError)
    assert reply.request.cancelled


@pytest.mark.parametrize(("given", "size"), [(2 * EACH_ANSWERS, 0), (2, EACH_BYTES)])
async def test_a_thread_waits_in_the_second_round_until_its_client_has_read(request_, given, size):
    loop = asyncio.get_running_loop()
    pace = Pace(request_, loop)
    request_.pause()

    def give():
        for _ in range(given):
            pace.gave(size)

    working = loop.run_in_executor(None, give)
    done, _ = await asyncio.wait([working], timeout=0.05)
    assert not done

    request_.resume()
    await asyncio.wait_for(working, 20)


async def test_a_thread_without_a_slow_client_never_waits(request_):
    loop = asyncio.get_running_loop()
    pace = Pace(request_, loop)

    def give():
        for _ in range(100 * EACH_ANSWERS):
            pace.gave(1)

    await asyncio.wait_for(loop.run_in_executor(None, give), 20)


async def test_pace_never_waits_on_the_event_loop(request_):
    pace = Pace(request_, asyncio.get_running_loop())
    request_.pause()

    for _ in range(100 * EACH_ANSWERS):
        pace.gave(1)


async def test_a_closed_backlog_references_neither_its_owner_nor_requests():
    class Owner:
        def __init__(self):
            self.backlog = Backlog(self.give_up)

        def give_up(self, error):
            raise AssertionError

    gc.disable()
    try:
        owner, request = Owner(), InferenceRequest("m", {})
        owner.backlog.enter(request)
        gone = weakref.ref(owner)
        owner.backlog.close()
        del owner
        assert gone() is None
    finally:
        gc.enable()
