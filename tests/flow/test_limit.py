"""The rate limiter: instances compete for resources, over virtual time."""

import asyncio
import random

import numpy as np
import pytest

import core
from core.errors import CoreError
from core.pipeline.instances.rate_limiter import GLOBAL, RateLimiter, ResourceDemand
from core.request import InferenceRequest
from core.tensor import Tensor


class Take(core.ModelInstance):
    """Takes 10 ms."""

    async def execute(self, batch):
        self.model.recorder.batches.append(batch.rows)
        await asyncio.sleep(0.010)
        return {"y": batch["x"]}


def needs(count, name="R", priority=0, instances=1):
    return (
        f"instance_group [ {{ count: {instances} kind: KIND_CPU rate_limiter {{ resources [ "
        f'{{ name: "{name}" count: {count} }} ] priority: {priority} }} }} ]'
    )


def ask(chain):
    x = Tensor.of("x", np.zeros((1, 1), np.float32))
    return chain.handler(InferenceRequest("m", {"x": x}))


async def duration(*replies):
    loop = asyncio.get_running_loop()
    start = loop.time()
    for reply in replies:
        await reply
    return loop.time() - start


async def test_instances_whose_demands_fit_run_concurrently(serve):
    limiter = RateLimiter({"R": {GLOBAL: 4}})
    one, other = (
        await serve(Take, needs(2), limiter=limiter),
        await serve(Take, needs(2), limiter=limiter),
    )

    assert await duration(ask(one), ask(other)) == pytest.approx(0.010, abs=0.001)


async def test_instances_whose_demands_do_not_fit_run_sequentially(serve):
    limiter = RateLimiter({"r": {GLOBAL: 4}})
    wide, narrow = (
        await serve(Take, needs(4), limiter=limiter),
        await serve(Take, needs(2), limiter=limiter),
    )

    assert await duration(ask(wide), ask(narrow)) == pytest.approx(0.020, abs=0.001)


async def test_a_resource_that_is_not_given_is_as_large_as_the_largest_demand(serve):
    limiter = RateLimiter({})
    wide = await serve(Take, needs(4), limiter=limiter)
    narrow = await serve(Take, needs(2, instances=2), limiter=limiter)

    assert await duration(ask(narrow), ask(narrow)) == pytest.approx(0.010, abs=0.001)
    assert await duration(ask(wide), ask(narrow)) == pytest.approx(0.020, abs=0.001)


async def test_a_demand_that_can_never_be_met_fails_the_load(serve):
    closed = []

    class Closing(Take):
        def close(self):
            closed.append(self.name)

    with pytest.raises(CoreError) as caught:
        await serve(Closing, needs(3), limiter=RateLimiter({"R": {GLOBAL: 2}}))

    assert caught.value.message == (
        'Resource count for "r" is limited to 2 which will prevent scheduling of one or more model '
        "instances, the minimum required count is 3 for instance group m_0 of model m"
    )
    assert closed == ["m_0_0"]


async def test_a_resource_that_the_options_leave_out_is_not_there(serve):
    with pytest.raises(CoreError) as caught:
        await serve(Take, needs(1), limiter=RateLimiter({"Other": {GLOBAL: 2}}))

    assert caught.value.message == (
        'Resource count for "r" is limited to 0 which will prevent scheduling of one or more model '
        "instances, the minimum required count is 1 for instance group m_0 of model m; "
        "--rate-limit-resource does not name it"
    )


R0, R_FOR_ALL = ("r", 0), ("r", GLOBAL)


def register(limiter, demand):
    """Register a runner that always has work."""
    return limiter.register(object(), demand, lambda: None, lambda runner: False)


@pytest.mark.parametrize(
    "demands", [[{R0: 1, R_FOR_ALL: 1}], [{R0: 1}, {R_FOR_ALL: 1}], [{R_FOR_ALL: 1}, {R0: 1}]]
)
@pytest.mark.parametrize("given", [{}, {"R": {GLOBAL: 9}}])
def test_a_resource_is_for_each_device_or_for_all_together(demands, given):
    limiter = RateLimiter(given)

    with pytest.raises(CoreError) as caught:
        for demand in demands:
            register(limiter, ResourceDemand(demand, of="model m"))

    assert caught.value.message == (
        'Resource "r" is present as both global and device-specific resource in the model '
        "configuration of model m"
    )


def test_an_unregistered_demand_does_not_decide_the_kind_of_a_resource():
    limiter = RateLimiter({})
    limiter.unregister(register(limiter, ResourceDemand({R0: 1})).runner)

    register(limiter, ResourceDemand({R_FOR_ALL: 1}))


@pytest.mark.parametrize(
    ("given", "device", "there"),
    [
        ({0: 1, GLOBAL: 3}, 0, 1),
        ({0: 1, GLOBAL: 3}, 1, 3),
        ({0: 1}, 1, 0),
        ({0: 1, 1: 4}, GLOBAL, 4),
    ],
)
def test_options_give_a_resource_to_one_device_to_each_or_to_all_together(given, device, there):
    limiter = RateLimiter({"R": given})

    register(limiter, ResourceDemand({("r", device): there}))
    with pytest.raises(CoreError, match=f"is limited to {there} which"):
        register(limiter, ResourceDemand({("r", device): there + 1}))


async def test_a_priority_of_two_gets_half_the_turns(serve):
    limiter = RateLimiter({"R": {GLOBAL: 1}})
    first = await serve(Take, needs(1, priority=1), limiter=limiter)
    last = await serve(Take, needs(1, priority=2), limiter=limiter)
    replies = [ask(chain) for _ in range(20) for chain in (first, last)]

    await asyncio.sleep(0.155)

    assert len(first.recorder.batches) / len(last.recorder.batches) == pytest.approx(2, abs=0.3)
    for reply in replies:
        await reply


async def test_an_unloaded_model_frees_its_resources(serve):
    limiter = RateLimiter({"R": {GLOBAL: 1}})
    gone, stays = (
        await serve(Take, needs(1), limiter=limiter),
        await serve(Take, needs(1), limiter=limiter),
    )
    await ask(gone)
    await gone.drain()
    await gone.close()

    assert await duration(ask(stays)) == pytest.approx(0.010, abs=0.001)


@pytest.mark.parametrize(
    "batching", ["", "dynamic_batching { max_queue_delay_microseconds: 2000 }"]
)
async def test_every_request_is_answered_whatever_the_demands(serve, batching):
    limiter = RateLimiter({"R": {GLOBAL: 4}})
    chains = [
        await serve(Take, needs(count, instances=2) + batching, limiter=limiter)
        for count in (1, 2, 3, 4)
    ]
    chance = random.Random(1)

    async def client():
        await asyncio.sleep(chance.random() * 0.5)
        await ask(chance.choice(chains))

    await asyncio.gather(*(client() for _ in range(300)))

    assert sum(chain.statistics.success.count for chain in chains) == 300


@pytest.mark.parametrize("seed", range(10))
def test_granted_demands_never_exceed_the_resources(seed):
    chance = random.Random(seed)
    limiter = RateLimiter({"a": {GLOBAL: 5}, "b": {0: 3, 1: 1}})
    turns, granted = [], []
    for _ in range(12):
        demand = ResourceDemand(
            {("a", GLOBAL): chance.randint(1, 5), ("b", chance.choice([0, 0, 1])): 1},
            chance.randint(1, 3),
        )
        turns.append(register(limiter, demand))
    for _ in range(2000):
        turn = chance.choice(turns)
        if turn.granted:
            if chance.random() < 0.8:
                limiter.executed(turn.runner)
                limiter.grant()
            else:
                limiter.release(turn.runner)
        else:
            limiter.acquire(turn.runner)
        granted = [each for each in turns if each.granted]
        for key, most in ((("a", GLOBAL), 5), (("b", 0), 3), (("b", 1), 1)):
            assert sum(each.demand.resources.get(key, 0) for each in granted) <= most
    assert all(turn.executions for turn in turns)
