"""Calls of models with any number of responses, and abandoned calls."""

import asyncio
import os
import signal
from pathlib import Path

import pytest

from core.errors import CoreError

MODES = ["process", "shared", "thread"]
EVERY_MODE = [*MODES, "inline"]
COUNT = """
def execute(self, requests):
    for request in requests:
        sender = request.get_response_sender()
        for number in range(int(x_of(request)[0])):
            sender.send(respond(np.array([number], np.float32)))
        sender.send(flags=1)
"""
ENDLESS = """
def execute(self, requests):  # until nobody waits
    sender = requests[0].get_response_sender()
    while not requests[0].is_cancelled():
        sender.send(respond(x_of(requests[0])))
        time.sleep(0.002)
    sender.send(flags=1)
"""
DEAF = """
def execute(self, requests):
    while not requests[0].is_cancelled():
        time.sleep(0.002)
    return [respond(x_of(request)) for request in requests]
"""


@pytest.mark.parametrize("mode", MODES)
async def test_a_decoupled_call_may_be_iterated_again(serve, mode):
    body = """
    def execute(self, requests):
        answers = call("count", x_of(requests[0])).exec(decoupled=True)
        first = next(answers)
        rest = [y_of(each)[0] for each in answers]
        again = [y_of(each)[0] for each in answers]
        return [respond(np.array([y_of(first)[0], -1, *rest, -1, *again], np.float32))]
    """
    models = await serve(
        count=(COUNT, {"decoupled": True, "mode": "thread"}), caller=(body, {"mode": mode})
    )

    assert await models.ask("caller", 3) == [0, -1, 1, 2, -1, 0, 1, 2]


@pytest.mark.parametrize("mode", EVERY_MODE)
async def test_answers_can_be_awaited_one_by_one(serve, mode):
    body = """
    async def execute(self, requests):
        async def total(n):
            answers = await call("count", np.array([n], np.float32)).async_exec(decoupled=True)
            return sum([y_of(each)[0] async for each in answers])

        return [respond(np.array(await asyncio.gather(*map(total, range(6))), np.float32))]
    """
    models = await serve(
        count=(COUNT, {"decoupled": True, "mode": "thread"}), caller=(body, {"mode": mode})
    )

    assert await models.ask("caller", 1) == [n * (n - 1) / 2 for n in range(6)]


@pytest.mark.parametrize("mode", MODES)
async def test_an_iterator_that_is_dropped_early_cancels_its_call(serve, tmp_path, mode):
    body = """
    def execute(self, requests):
        for response in call("endless", x_of(requests[0])).exec(decoupled=True):
            break
        while not os.path.exists(STOP):
            time.sleep(0.005)  # still executing: the end of execute is not what cancels
        return [respond(y_of(response))]
    """
    stop = str(tmp_path / "stop")
    models = await serve(
        endless=(ENDLESS, {"decoupled": True}),
        caller=(body.replace("STOP", repr(stop)), {"mode": mode}),
    )
    asked = asyncio.ensure_future(models.ask("caller", 5))
    try:
        await models.until(
            lambda: models.server.control.health.statistics_here("endless")[0]["execution_count"]
        )
        await models.idle("endless")
        assert not asked.done()
    finally:
        Path(stop).touch()
        assert await asked == [5]


@pytest.mark.parametrize("mode", MODES)
async def test_an_iterator_that_is_cancelled_comes_to_its_end(serve, mode):
    body = """
    def execute(self, requests):
        answers = call("endless", x_of(requests[0])).exec(decoupled=True)
        next(answers)
        answers.cancel()
        for response in answers:
            pass
        answers.cancel()
        return [respond(x_of(requests[0]))]
    """
    models = await serve(endless=(ENDLESS, {"decoupled": True}), caller=(body, {"mode": mode}))

    assert await models.ask("caller", 1) == [1]
    await models.idle("endless")


@pytest.mark.parametrize("mode", EVERY_MODE)
async def test_a_coroutine_that_gives_up_cancels_its_call(serve, mode):
    body = """
    async def execute(self, requests):
        try:
            await asyncio.wait_for(call("deaf", x_of(requests[0])).async_exec(), 0.05)
        except asyncio.TimeoutError:
            return [respond(x_of(requests[0]))]
    """
    models = await serve(deaf=DEAF, caller=(body, {"mode": mode}))

    assert await models.ask("caller", 1) == [1]
    await models.idle("deaf")


async def test_the_calls_of_a_child_that_dies_are_cancelled(serve):
    body = """
    def execute(self, requests):
        return [respond(y_of(call("deaf", x_of(r)).exec())) for r in requests]
    """
    models = await serve(deaf=DEAF, caller=body)
    asked = asyncio.ensure_future(models.ask("caller", 1))
    await models.until(lambda: models.version("deaf").chain.in_flight)

    os.kill(models.child("caller").pid, signal.SIGKILL)

    with pytest.raises(CoreError, match="is not healthy"):
        await asked
    await models.idle("deaf")
