"""A request whose deadline cannot be met is refused on arrival, and no other one; over virtual time."""

import asyncio
import re

import numpy as np
import pytest

import core
from core.errors import DeadlineExceeded, Kind
from core.request import InferenceRequest
from core.tensor import Tensor
from frontends.shared.deadline import infer_with_deadline

TAKES_S = 0.010


class Slow(core.ModelInstance):
    """y = x after 10 ms, or after the time in the first row."""

    async def execute(self, batch):
        self.model.recorder.batches.append([request.id for request in batch.requests])
        await asyncio.sleep(float(batch["x"][0, 0]) or TAKES_S)
        return {"y": batch["x"]}


@pytest.fixture
async def open_slow(serve, monkeypatch):
    loop = asyncio.get_running_loop()
    monkeypatch.setattr("time.monotonic_ns", loop.time_ns)

    async def make(config="", **options):
        return await serve(Slow, config, **options)

    return make


def ask(chain, within_s=None, id="", takes_s=0.0, priority=0):
    loop = asyncio.get_running_loop()
    x = np.full((1, 1), takes_s, np.float32)
    request = InferenceRequest("m", {"x": Tensor.of("x", x)}, id=id, priority=priority)
    if within_s is not None:
        request.deadline_ns = loop.time_ns() + round(within_s * 1e9)
    return infer_with_deadline(chain.handler, request, loop.time_ns)


async def learn(chain, count=30, takes_s=0.0):
    for _ in range(count):
        await ask(chain, takes_s=takes_s)


def queued(chain, count, **options):
    """One request that runs and so many that wait."""
    return [ask(chain, **options) for _ in range(count + 1)]


async def test_a_request_that_would_wait_clearly_longer_is_refused_at_once(open_slow):
    chain = await open_slow()
    await learn(chain)
    waiting = queued(chain, 100)
    before, failed = asyncio.get_running_loop().time(), chain.statistics.fail.count

    with pytest.raises(DeadlineExceeded) as error:
        ask(chain, 0.5, id="late")

    assert error.value.kind is Kind.DEADLINE_EXCEEDED
    assert re.fullmatch(
        r"\[request id: late\] estimated wait 1 s exceeds the time left 0\.5 s", error.value.message
    )
    assert asyncio.get_running_loop().time() == before
    assert chain.statistics.failures["DEADLINE"] == chain.statistics.fail.count - failed == 1
    assert (chain.pending, chain.in_flight) == (100, 101)
    await asyncio.gather(*waiting)
    assert not any("late" in batch for batch in chain.recorder.batches)


async def test_a_request_that_may_meet_its_deadline_waits(open_slow):
    chain = await open_slow()
    await learn(chain)
    waiting = queued(chain, 100)

    assert await ask(chain, 2.0)

    await asyncio.gather(*waiting)
    assert chain.statistics.failures["DEADLINE"] == 0


async def test_a_slightly_longer_estimate_refuses_no_request(open_slow):
    chain = await open_slow()
    await learn(chain)
    waiting = queued(chain, 100)

    with pytest.raises(DeadlineExceeded, match=r"^Deadline Exceeded$"):
        await ask(chain, 0.8)

    await asyncio.gather(*waiting)
    assert chain.statistics.failures["CANCELED"] == 1


async def test_a_model_with_few_executions_refuses_no_request(open_slow):
    chain = await open_slow()
    await learn(chain, 15)
    waiting = queued(chain, 100)

    with pytest.raises(DeadlineExceeded, match=r"^Deadline Exceeded$"):
        await ask(chain, 0.010)

    await asyncio.gather(*waiting)


async def test_an_idle_model_refuses_no_request_however_short_the_time(open_slow):
    chain = await open_slow()
    await learn(chain, takes_s=5.0)

    with pytest.raises(DeadlineExceeded, match=r"^Deadline Exceeded$"):
        await ask(chain, 0.001)

    assert chain.statistics.failures["DEADLINE"] == 0


async def test_a_batch_that_waits_for_more_requests_at_an_idle_instance_refuses_no_request(
    open_slow,
):
    chain = await open_slow("dynamic_batching { max_queue_delay_microseconds: 100000 }")
    await learn(chain)
    first = ask(chain)
    await asyncio.sleep(0.001)

    with pytest.raises(DeadlineExceeded, match=r"^Deadline Exceeded$"):
        await ask(chain, 0.001)

    await first


async def test_requests_without_a_deadline_always_wait(open_slow):
    chain = await open_slow()
    await learn(chain)

    assert len(await asyncio.gather(*queued(chain, 1000))) == 1001


async def test_early_refusal_can_be_switched_off(open_slow):
    chain = await open_slow(early=False)
    await learn(chain)
    waiting = queued(chain, 100)

    with pytest.raises(DeadlineExceeded, match=r"^Deadline Exceeded$"):
        await ask(chain, 0.1)

    await asyncio.gather(*waiting)


async def test_several_instances_and_batches_shorten_the_wait(open_slow):
    chain = await open_slow("instance_group { count: 4 } dynamic_batching { }")
    await learn(chain, 5)
    for _ in range(20):
        await asyncio.gather(*[ask(chain) for _ in range(32)])
    waiting = [ask(chain) for _ in range(32 + 160)]
    await asyncio.sleep(0.001)

    late = ask(chain, 0.10)  # 160 wait: five turns of 32, 50 ms

    assert await late
    await asyncio.gather(*waiting)


async def test_requests_of_lower_levels_do_not_count(open_slow):
    chain = await open_slow(
        "dynamic_batching { priority_levels: 2 default_priority_level: 2 }", max_batch_size=1
    )
    await learn(chain)
    waiting = queued(chain, 100, priority=2)
    await asyncio.sleep(0.001)

    assert await ask(chain, 0.1, priority=1)
    with pytest.raises(DeadlineExceeded, match="estimated wait"):
        ask(chain, 0.1, priority=2)

    await asyncio.gather(*waiting)


async def test_slow_first_executions_are_forgotten(open_slow):
    chain = await open_slow()
    await learn(chain, 20, takes_s=5.0)
    for _ in range(3):
        await asyncio.gather(*queued(chain, 70))
        waiting = queued(chain, 5)
        await ask(chain, 60.0)
        await asyncio.gather(*waiting)
    waiting = queued(chain, 50)

    assert await ask(chain, 0.6)

    await asyncio.gather(*waiting)


async def test_with_queue_timeouts_no_request_is_refused_early(open_slow):
    chain = await open_slow(
        "dynamic_batching { default_queue_policy { default_timeout_microseconds: 10000000 } }",
        max_batch_size=1,
    )
    await learn(chain)
    waiting = queued(chain, 100)
    await asyncio.sleep(0.001)

    with pytest.raises(DeadlineExceeded, match=r"^Deadline Exceeded$"):
        await ask(chain, 0.1)

    await asyncio.gather(*waiting)
