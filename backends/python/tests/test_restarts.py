"""Children that die, and those that are started in their place."""

import asyncio
import logging
import os
import signal
import time

import numpy as np
import pytest

from core import CoreError

PID = """
    def execute(self, requests):
        return [pb_utils.InferenceResponse([pb_utils.Tensor(
            "y", np.array([os.getpid()], np.float32))]) for _ in requests]
"""
DIES = """
    def initialize(self, args):
        self.inputs = 0

    def execute(self, requests):
        x = requests[0].inputs()[0].as_numpy()
        if x[0] < 0:
            os.kill(os.getpid(), signal.SIGKILL) if x[0] == -1 else os._exit(3)
        self.inputs += 1
        return [pb_utils.InferenceResponse([pb_utils.Tensor(
            "y", np.array([[self.inputs]], np.float32))]) for _ in requests]
"""


async def until(condition, seconds=10):
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, "it did not happen in time"
        await asyncio.sleep(0.01)


async def killed(pid, caplog):
    """Kill a child, and wait until the server has noticed."""
    before = len(caplog.messages)
    os.kill(pid, signal.SIGKILL)
    await until(lambda: any("is not healthy" in each for each in caplog.messages[before:]))


@pytest.mark.parametrize("how", [-1, -2])
async def test_a_child_that_dies_fails_its_requests_and_is_started_again(serve, children, how):
    model = await serve(DIES, "max_batch_size: 4 dynamic_batching { }")
    x = np.ones((1, 1), np.float32)
    assert (await model.ask({"x": x})).output("y").array[0] == 1
    (first,) = children()

    for reply in [model.ask({"x": x * how}) for _ in range(3)]:
        with pytest.raises(CoreError) as error:
            await reply
        assert error.value.message == "Stub process 'm_0' is not healthy."

    assert (await model.ask({"x": x})).output("y").array[0] == 1  # initialized again
    assert children() != [first]
    assert model.statistics.fail.count == 3


async def test_others_do_not_notice_a_death(serve, children):
    model = await serve(
        """
        def execute(self, requests):
            if requests[0].request_id() == "die":
                os._exit(1)
            time.sleep(0.2)
            return [pb_utils.InferenceResponse([pb_utils.Tensor(
                "y", np.array([os.getpid()], np.float32))])]
        """,
        "instance_group [ { count: 2 kind: KIND_CPU } ]",
    )
    replies = [model.ask({"x": np.ones(1, np.float32)}, id=id) for id in ("", "die", "", "")]
    results = await asyncio.gather(*replies, return_exceptions=True)

    assert [isinstance(result, CoreError) for result in results] == [False, True, False, False]


async def test_a_child_killed_while_idle_is_replaced_for_the_next_request(serve, children, caplog):
    model = await serve(PID)
    await model.y(1)
    (pid,) = children()

    await killed(pid, caplog)

    assert await model.y(1) != [pid]
    assert len(children()) == 1


async def test_a_child_killed_before_its_first_request_is_replaced(serve, children, caplog):
    model = await serve(PID)
    (pid,) = children()
    await killed(pid, caplog)

    assert await model.y(1) != [pid]


async def test_a_thread_of_the_model_is_served_before_the_first_request(serve, folder, caplog):
    caplog.set_level(logging.INFO, "core")
    await serve(
        """
    def initialize(self, args):
        self.family = pb_utils.MetricFamily("ticks", "Ticks", pb_utils.MetricFamily.COUNTER)
        self.metric = self.family.Metric()
        threading.Thread(target=self.tick, daemon=True).start()

    def tick(self):
        for _ in range(100):
            time.sleep(0.001)
            self.metric.increment(1)
        pb_utils.Logger.log_info(f"ticked {self.metric.value():.0f} times")
    """
        + PID
    )
    await until(lambda: "ticked 100 times" in caplog.text)


async def test_closing_while_a_child_is_started_again_leaves_no_child(serve, children, caplog):
    model = await serve("    def initialize(self, args):\n        time.sleep(0.5)\n" + PID)
    await killed(children()[0], caplog)
    reply = model.ask({"x": np.ones(1, np.float32)})
    await asyncio.sleep(0.2)

    await model.chain.close()

    with pytest.raises(CoreError):
        await reply
    await until(lambda: children() == [])


async def test_a_failed_restart_is_reported_and_retried(serve, folder, children, caplog):
    model = await serve(
        """
    def initialize(self, args):
        if os.path.exists(os.path.join(pb_utils.get_model_dir(), "broken")):
            raise RuntimeError("still broken")
    """
        + PID
    )
    await model.y(1)
    (folder / "1" / "broken").touch()
    await killed(children()[0], caplog)

    with pytest.raises(CoreError, match="still broken"):
        await model.y(1)
    (folder / "1" / "broken").unlink()

    assert len(await model.y(1)) == 1


async def test_a_process_that_the_model_forked_does_not_hide_its_death(serve, children):
    model = await serve(
        """
        def execute(self, requests):
            if os.fork() == 0:
                time.sleep(5)
                os._exit(0)
            os._exit(1)
        """
    )
    with pytest.raises(CoreError, match="not healthy"):
        await asyncio.wait_for(model.ask({"x": np.ones(1, np.float32)})._only(), 3)
