"""Models with any number of answers, read by threads and by coroutines."""

import asyncio
import threading

import numpy as np
import pytest
from flow.in_process.conftest import PATIENCE_S, until

import core
from core import backlog
from frontends.in_process.streams import REPORT_RESPONSES

NUMBERS = {"inputs": {"n": ("INT32", [1])}, "outputs": {"i": ("INT32", [1])}}


def number(value):
    return {"n": np.array([value], np.int32)}


def count(n):
    yield from (np.array([i], np.int32) for i in range(int(n[0])))


async def count_async(n):
    for i in range(int(n[0])):
        await asyncio.sleep(0)
        yield np.array([i], np.int32)


class Endless:
    """Counts for ever, or until it is closed."""

    def __init__(self):
        self.given = 0
        self.closed = threading.Event()

    def __call__(self, n):
        try:
            while True:
                self.given += 1
                yield np.array([self.given], np.int32)
        finally:
            self.closed.set()


@pytest.fixture
def endless(server):
    made = Endless()
    server.bind("endless", made, **NUMBERS)
    return made


@pytest.mark.parametrize("function", [count, count_async])
@pytest.mark.parametrize("answers", [0, 1, 5000])
def test_a_thread_iterates_over_the_answers(server, function, answers):
    server.bind("count", function, **NUMBERS)

    found = [int(each["i"][0]) for each in server.stream("count", number(answers))]

    assert found == list(range(answers))


@pytest.mark.parametrize("answers", [0, 1, 5000])
async def test_a_coroutine_iterates_over_the_answers(server, answers):
    server.bind("count", count, **NUMBERS)

    found = [int(each["i"][0]) async for each in server.stream_async("count", number(answers))]

    assert found == list(range(answers))


def test_an_ordinary_model_is_a_stream_of_one(server, x):
    server.bind("one", lambda n: n, **NUMBERS)

    assert [int(each["i"][0]) for each in server.stream("one", number(3))] == [3]


def test_a_model_waits_for_a_slow_reader(server, endless):
    stream = server.stream("endless", number(0))
    until(lambda: server._call(lambda: stream._stream._backlog.full))

    for taken in range(3 * backlog.MOST_ANSWERS):
        ahead = endless.given - taken
        assert ahead <= backlog.MOST_ANSWERS + REPORT_RESPONSES + 4 * backlog.EACH_ANSWERS
        next(stream)
    stream.close()


def test_a_reader_that_never_reads_loses_the_rest(server, endless, monkeypatch):
    monkeypatch.setattr(backlog, "STALLED_S", 0.01)
    stream = server.stream("endless", number(0))
    assert endless.closed.wait(PATIENCE_S)

    with pytest.raises(core.CoreError, match="the client does not read") as lost:
        list(stream)
    assert lost.value.kind is core.Kind.UNAVAILABLE


@pytest.mark.parametrize("leave", ["close", "with", "drop"])
def test_leaving_a_stream_ends_the_model(server, endless, leave):
    stream = server.stream("endless", number(0))
    assert int(next(stream)["i"][0]) == 1

    if leave == "close":
        stream.close()
        assert list(stream) == []
    elif leave == "with":
        with stream:
            next(stream)
    del stream

    assert endless.closed.wait(PATIENCE_S)


async def test_a_coroutine_that_leaves_a_stream_ends_the_model(server, endless):
    async with server.stream_async("endless", number(0)) as stream:
        await anext_of(stream)

    assert await asyncio.to_thread(endless.closed.wait, PATIENCE_S)
    assert [each async for each in stream] == []


async def test_the_cancellation_of_a_reader_ends_the_model(server):
    ended = threading.Event()

    async def quiet(n):
        try:
            yield np.array([1], np.int32)
            await asyncio.Event().wait()
        finally:
            ended.set()

    server.bind("quiet", quiet, **NUMBERS)
    stream = server.stream_async("quiet", number(0))
    await anext_of(stream)
    waiting = asyncio.ensure_future(anext_of(stream))
    await asyncio.sleep(0)

    waiting.cancel()
    with pytest.raises(asyncio.CancelledError):
        await waiting

    assert await asyncio.to_thread(ended.wait, PATIENCE_S)


def anext_of(stream):
    return stream.__anext__()


def test_an_error_is_raised_after_the_responses_before_it(server):
    def break_down(n):
        yield from count(n)
        raise ValueError("no luck")

    server.bind("break", break_down, **NUMBERS)
    stream = server.stream("break", number(2))

    assert [int(next(stream)["i"][0]) for _ in range(2)] == [0, 1]
    with pytest.raises(core.CoreError, match="no luck") as failure:
        next(stream)
    assert isinstance(failure.value.__cause__, ValueError)
    assert list(stream) == []


def test_one_broken_stream_leaves_the_others_of_its_batch(server):
    def count_rows(n):
        if n[0, 0] < 0:
            raise ValueError("negative")
        yield np.array([[i] for i in n[:, 0]], np.int32)

    server.bind("rows", count_rows, batching=True, max_queue_delay_microseconds=1000, **NUMBERS)
    streams = [server.stream("rows", {"n": np.array([[value]], np.int32)}) for value in (1, -1, 2)]

    assert int(next(streams[0])["i"][0, 0]) == 1
    with pytest.raises(core.CoreError, match="negative"):
        next(streams[1])
    assert int(next(streams[2])["i"][0, 0]) == 2


def test_refusals_are_raised_by_the_first_next(server):
    stream = server.stream("none", number(1))

    with pytest.raises(core.CoreError, match="not found"):
        next(stream)
    assert list(stream) == []


def test_a_stream_has_a_time_for_all_of_it(server):
    waiting = threading.Event()

    def stop_in_between(n):
        yield n
        assert waiting.wait(PATIENCE_S)

    server.bind("stop", stop_in_between, **NUMBERS)
    stream = server.stream("stop", number(1), timeout=0.5)  # enough to begin on a busy machine
    with pytest.raises(TimeoutError, match="did not answer within"):
        list(stream)

    try:
        until(lambda: stream._stream.request.cancelled)
    finally:
        waiting.set()


async def test_a_coroutine_has_a_time_for_all_of_a_stream(server):
    async def quiet(n):
        await asyncio.Event().wait()
        yield n

    server.bind("quiet", quiet, **NUMBERS)

    with pytest.raises(TimeoutError, match="did not answer within"):
        await anext_of(server.stream_async("quiet", number(1), timeout=0.05))


def test_a_function_of_the_servers_loop_reads_a_stream_there(server):
    async def total(n):
        found = 0
        async for each in server.stream_async("count", {"n": n}):
            found += int(each["i"][0])
        return np.array([found], np.int32)

    server.bind("count", count, **NUMBERS)
    server.bind("total", total, **NUMBERS)

    assert server.infer("total", number(100))["i"] == [4950]
