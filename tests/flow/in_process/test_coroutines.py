"""Requests to a server in this process, from coroutines on other loops."""

import asyncio
import threading

import numpy as np
import pytest
from flow.in_process.conftest import PATIENCE_S, ROW

import core


async def test_a_coroutine_awaits_its_answer(server, x):
    server.bind("double", lambda x: 2 * x, **ROW)

    answer = await server.infer_async("double", {"x": x})

    np.testing.assert_array_equal(answer["y"], 2 * x)


async def test_many_at_once_get_each_its_own(server):
    server.bind("double", lambda x: 2 * x, batching=True, **ROW)
    rows = [np.full((1, 1), number, np.float32) for number in range(200)]

    answers = await asyncio.gather(*(server.infer_async("double", {"x": row}) for row in rows))

    assert [float(each["y"][0, 0]) for each in answers] == [2.0 * i for i in range(200)]
    assert server.statistics("double")[0]["inference_count"] == 200


async def test_the_cancellation_of_a_task_cancels_its_request(server, endless, x):
    task = asyncio.ensure_future(server.infer_async("endless", {"x": x}))
    assert await asyncio.to_thread(endless.began.wait, PATIENCE_S)

    task.cancel()

    with pytest.raises(asyncio.CancelledError):
        await task
    assert await asyncio.to_thread(endless.cancelled.wait, PATIENCE_S)


async def test_a_timeout_ends_the_waiting_and_cancels_the_request(server, endless, x):
    with pytest.raises(TimeoutError, match="did not answer within"):
        await server.infer_async("endless", {"x": x}, timeout=0.01)

    assert await asyncio.to_thread(endless.cancelled.wait, PATIENCE_S)


async def test_refusals_and_errors_are_raised(server, x):
    def fail(x):
        raise KeyError("no luck")

    server.bind("fail", fail, **ROW)

    with pytest.raises(core.CoreError, match="not found"):
        await server.infer_async("none", {"x": x})
    with pytest.raises(core.CoreError, match="no luck") as failure:
        await server.infer_async("fail", {"x": x})
    assert isinstance(failure.value.__cause__, KeyError)


async def test_a_coroutine_function_runs_on_the_servers_loop_and_calls_other_models(server, x):
    server.bind("double", lambda x: 2 * x, **ROW)

    async def four(x):
        assert asyncio.get_running_loop() is not here
        return (await server.infer_async("double", {"x": 2 * x}))["y"]

    here = asyncio.get_running_loop()
    server.bind("four", four, **ROW)

    np.testing.assert_array_equal((await server.infer_async("four", {"x": x}))["y"], 4 * x)


async def test_a_coroutine_function_is_cancelled_with_its_requests(server, x):
    began, ended = threading.Event(), threading.Event()

    async def wait_for_ever(x):
        began.set()
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()

    server.bind("wait", wait_for_ever, **ROW)
    task = asyncio.ensure_future(server.infer_async("wait", {"x": x}))
    assert await asyncio.to_thread(began.wait, PATIENCE_S)

    task.cancel()

    assert await asyncio.to_thread(ended.wait, PATIENCE_S)
    assert server.ready("wait")


async def test_instances_of_a_coroutine_function_run_side_by_side(server, x):
    both = asyncio.Event()
    running = []

    async def meet(x):
        running.append(x)
        if len(running) == 2:
            both.set()
        await both.wait()
        return x

    server.bind("meet", meet, instances=2, **ROW)

    await asyncio.gather(*(server.infer_async("meet", {"x": x}) for _ in range(2)))

    assert len(running) == 2


def test_a_coroutine_may_leave_with_its_loop(server, endless, x):
    async def leave():
        task = asyncio.ensure_future(server.infer_async("endless", {"x": x}))
        await asyncio.to_thread(endless.began.wait, PATIENCE_S)
        assert not task.done()

    asyncio.run(leave())  # which cancels the task

    assert endless.cancelled.wait(PATIENCE_S)
    server.bind("double", lambda x: 2 * x, **ROW)
    server.infer("double", {"x": x})


async def test_a_server_begins_and_ends_with_an_async_block(x):
    async with core.Server() as server:
        await asyncio.to_thread(server.bind, "one", lambda x: x, **ROW)
        await server.infer_async("one", {"x": x})

    with pytest.raises(core.CoreError, match="the server is stopped"):
        await server.infer_async("one", {"x": x})
