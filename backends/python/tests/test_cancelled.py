"""Requests that end by a cancellation while the model executes count as failures, once."""

import asyncio

import numpy as np
import pytest

from core import CoreError

MODES = ["process", "shared", "thread", "inline"]
# Code of a model that has seen the cancellation.
ENDS = {
    "answer": "return [pb_utils.InferenceResponse([pb_utils.Tensor('y', np.ones(1, np.float32))])]",
    "error": "return [pb_utils.InferenceResponse(error=pb_utils.TritonError("
    "'stopped', pb_utils.TritonError.CANCELLED))]",
    "raise": "raise RuntimeError('stopped')",
}
POLLS = """
    {begin} execute(self, requests):
        end = time.monotonic() + 20
        while not requests[0].is_cancelled():
            assert time.monotonic() < end
            {sleep}
        {after}
"""
STREAMS = """
    {begin} execute(self, requests):
        sender = requests[0].get_response_sender()
        sender.send(pb_utils.InferenceResponse([pb_utils.Tensor("y", np.ones(1, np.float32))]))
        end = time.monotonic() + 20
        while not sender.is_cancelled():
            assert time.monotonic() < end
            {sleep}
        {after}
"""
STREAM_ENDS = {
    "final": "sender.send(flags=1)",
    "answer": "sender.send(pb_utils.InferenceResponse([]), flags=1)",
    "dropped": "return",
    "raise": "raise RuntimeError('stopped')",
}


def source(template, mode, after):
    if mode == "inline":
        begin, sleep = "async def", "await __import__('asyncio').sleep(0.005)"
    else:
        begin, sleep = "def", "time.sleep(0.005)"
    return template.format(begin=begin, sleep=sleep, after=after)


async def until(condition):
    for _ in range(3000):
        if condition():
            return
        await asyncio.sleep(0.005)
    raise AssertionError("it never came")


def x():
    return {"x": np.ones(1, np.float32)}


def counts(model):
    statistics = model.statistics
    return statistics.success.count, statistics.fail.count, statistics.failures["CANCELED"]


@pytest.mark.parametrize("after", ENDS)
@pytest.mark.parametrize("mode", MODES)
async def test_a_running_request_counts_as_cancelled(serve, mode, after):
    model = await serve(source(POLLS, mode, ENDS[after]), mode=mode)
    reply = model.ask(x())
    await until(lambda: not model.chain.pending)
    await asyncio.sleep(0.05)  # the model may have begun, or not: it counts the same

    reply.cancel()
    await until(lambda: not model.chain.in_flight)

    assert counts(model) == (0, 1, 1)
    assert model.statistics.inference_count == 0


@pytest.mark.parametrize("after", STREAM_ENDS)
@pytest.mark.parametrize("mode", MODES)
async def test_a_running_stream_counts_as_cancelled(serve, mode, after):
    model = await serve(source(STREAMS, mode, STREAM_ENDS[after]), decoupled=True, mode=mode)
    reply = model.ask(x())
    items = []
    reply.listen(lambda item, final: items.append((item, final)))
    await until(lambda: items)

    reply.cancel()
    await until(lambda: not model.chain.in_flight)

    assert counts(model) == (0, 1, 1)
    assert not isinstance(items[0][0], CoreError)
    assert items[-1][1]
