"""Requests that wait for a load, in virtual time."""

import asyncio

import pytest
from core_memory_budget.waiting import WaitingRequests

from core.errors import CoreError, DeadlineExceeded, Exhausted, Kind, internal, unavailable
from core.request import InferenceRequest
from core.response import InferenceResponse, Reply
from core.telemetry.tracing.settings import TIMESTAMPS
from core.telemetry.tracing.trace import Trace


class Queue(WaitingRequests):
    """Counts loads; what is submitted is answered at once."""

    def __init__(self, most=10, most_s=60.0):
        loop = asyncio.get_running_loop()
        self.loads, self.served, self.times, self.refuses = 0, [], [], None
        super().__init__(
            "m", loop, self.load, self.answer, self.times.append, most, most_s, loop.time_ns
        )

    def load(self):
        self.loads += 1

    def answer(self, request):
        if self.refuses is not None:
            raise self.refuses
        self.served.append(request.id)
        reply = Reply(request)
        reply.send(InferenceResponse("m", 1, [], id=request.id))
        return reply


def request(id="", **fields):
    return InferenceRequest("m", {}, id=id, **fields)


async def test_requests_wait_and_leave_in_their_order():
    queue = Queue()

    replies = [queue.take(request(str(number))) for number in range(3)]
    assert len(queue) == 3
    assert queue.served == []
    await asyncio.sleep(2)
    queue.loaded()

    assert [(await reply).id for reply in replies] == ["0", "1", "2"]
    assert queue.served == ["0", "1", "2"]
    assert queue.times == [2, 2, 2]
    assert len(queue) == 0


async def test_a_request_whose_deadline_passes_fails_then_and_the_others_wait_on():
    loop, queue = asyncio.get_running_loop(), Queue()

    hasty = queue.take(request(deadline_ns=loop.time_ns() + 3_000_000_000))
    patient = queue.take(request("patient"))
    start = loop.time()
    with pytest.raises(DeadlineExceeded, match="while model 'm' was loading"):
        await hasty

    assert loop.time() - start == pytest.approx(3)
    queue.loaded()
    assert (await patient).id == "patient"
    assert queue.served == ["patient"]


async def test_a_request_whose_deadline_has_passed_starts_no_load():
    queue = Queue()

    with pytest.raises(DeadlineExceeded):
        queue.take(request(deadline_ns=1))

    assert queue.loads == 0


async def test_the_timeout_of_a_client_limits_the_wait():
    queue = Queue()

    with pytest.raises(CoreError, match="Request timeout expired") as error:
        await queue.take(request(timeout_us=500_000))

    assert error.value.kind is Kind.UNAVAILABLE
    assert queue.times == [pytest.approx(0.5)]


async def test_no_request_waits_longer_than_the_server_allows():
    queue = Queue(most_s=5)

    with pytest.raises(CoreError, match="not loaded within 5 s"):
        await queue.take(request())


async def test_a_failed_load_fails_all_that_wait_with_its_error():
    queue = Queue()
    replies = [queue.take(request()) for _ in range(3)]

    queue.failed(internal("the file is broken"))

    for reply in replies:
        with pytest.raises(CoreError, match="the file is broken"):
            await reply


async def test_after_a_failure_requests_get_the_error_at_once_for_longer_and_longer():
    queue = Queue()
    pauses = []
    for _ in range(8):
        reply = queue.take(request())
        queue.failed(internal("broken"))
        with pytest.raises(CoreError):
            await reply
        with pytest.raises(CoreError, match="broken"):
            queue.take(request())
        start = asyncio.get_running_loop().time()
        while queue.refusal is not None:
            await asyncio.sleep(0.5)
        pauses.append(asyncio.get_running_loop().time() - start)

    assert pauses == [1, 2, 4, 8, 16, 32, 60, 60]
    queue.take(request())
    queue.loaded()
    assert queue.refusal is None


async def test_more_requests_than_the_limit_are_refused():
    queue = Queue(most=2)
    replies = [queue.take(request()) for _ in range(2)]

    with pytest.raises(Exhausted, match="2 requests wait for the load of model 'm'"):
        queue.take(request())

    queue.loaded()
    for reply in replies:
        await reply


async def test_a_cancelled_request_leaves_the_queue():
    queue = Queue()
    cancelled, other = request("cancelled"), request("other")
    reply, _ = queue.take(cancelled), queue.take(other)

    cancelled.cancel()

    with pytest.raises(CoreError) as error:
        await reply
    assert error.value.kind is Kind.CANCELLED
    queue.loaded()
    assert queue.served == ["other"]


async def test_a_request_that_the_loaded_model_refuses_fails_alone():
    queue = Queue()
    reply = queue.take(request())
    queue.refuses = unavailable("the queue is full")

    queue.loaded()

    with pytest.raises(CoreError, match="the queue is full"):
        await reply


async def test_a_trace_tells_how_long_the_request_has_waited():
    queue, asked = Queue(), request()
    asked.trace = Trace(1, "m", 1, "", (TIMESTAMPS,))
    reply = queue.take(asked)

    await asyncio.sleep(1.25)
    queue.loaded(["a", "b"])
    await reply

    assert asked.trace.attributes == {"memory.waited_ms": 1250, "memory.unloaded": ("a", "b")}
    assert [name for _, name in asked.trace.stamps()] == ["MODEL_LOAD_START", "MODEL_LOAD_END"]
