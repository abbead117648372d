"""Instances that cannot serve for a while: the distribution of requests, and the readiness of the model."""

import numpy as np
import pytest

import core
from core.pipeline.instances.rate_limiter import RateLimiter
from core.request import InferenceRequest
from core.tensor import Tensor

TWO = "instance_group [ { count: 2 kind: KIND_CPU } ]"
SEQUENCES = "sequence_batching { direct { } max_sequence_idle_microseconds: 60000000 }"
START, END = 1, 2


class Moody(core.ModelInstance):
    """Answers with its number; ready or not on command of the test."""

    placement = "callback"
    is_ready = True
    says_ready = True

    def open(self):
        self.number = float(self.name[-1])
        self.held = []
        self.model.recorder.batches.append(self)

    def ready(self):
        return self.is_ready

    async def check(self):
        return self.is_ready and self.says_ready

    def begin(self, batch, done):
        if not self.is_ready:
            self.held.append((batch, done))
            return
        batch.respond_all([[Tensor.of("y", np.full((r.rows, 1), self.number, np.float32))]
                           for r in batch.requests])  # fmt: skip
        done(None)

    def turn(self, ready):
        self.is_ready = ready
        held, self.held = self.held, []
        for batch, done in held:
            self.begin(batch, done)
        self.changed()


def ask(chain, **fields):
    x = Tensor.of("x", np.zeros((1, 1), np.float32))
    return chain.handler(InferenceRequest("m", {"x": x}, **fields))


async def number(chain, **fields):
    return (await ask(chain, **fields)).output("y").array.item()


@pytest.fixture
def opened(serve):
    """Open a chain; gives it and its instances, by their numbers."""

    async def start(config=TWO, **options):
        chain = await serve(Moody, config, **options)
        instances = sorted(chain.recorder.batches, key=lambda each: each.number)
        return chain, instances

    return start


async def test_requests_go_to_the_instance_that_is_ready(opened):
    chain, (zero, _) = await opened()
    assert {await number(chain) for _ in range(4)} == {0, 1}

    zero.turn(False)
    assert [await number(chain) for _ in range(4)] == [1] * 4
    assert chain.ready

    zero.turn(True)
    assert {await number(chain) for _ in range(4)} == {0, 1}


async def test_requests_go_to_an_unready_instance_if_no_other_serves(opened):
    chain, (zero, one) = await opened()
    zero.turn(False)
    one.begin = lambda batch, done: done(core.Fatal("the device is gone"))
    with pytest.raises(core.CoreError, match="the device is gone"):
        await ask(chain)

    reply = ask(chain)
    given = len(zero.held)
    zero.turn(True)

    assert given == 1
    assert (await reply).output("y").array.item() == 0


async def test_without_a_ready_instance_requests_wait(opened):
    chain, (zero, one) = await opened()
    zero.turn(False)
    one.turn(False)
    assert not chain.ready
    first, second, third = (ask(chain) for _ in range(3))

    one.turn(True)
    assert chain.ready
    for reply in (first, third):  # the second went to the other one, and waits there
        assert (await reply).output("y").array.item() == 1

    zero.turn(True)
    assert (await second).output("y").array.item() == 0


async def test_a_sequence_waits_for_its_instance(opened):
    chain, instances = await opened(TWO + SEQUENCES)
    mine = await number(chain, correlation_id=7, flags=START)
    instances[int(mine)].turn(False)

    assert await number(chain, correlation_id=8, flags=START | END) != mine
    reply = ask(chain, correlation_id=7, flags=END)
    instances[int(mine)].turn(True)

    assert (await reply).output("y").array.item() == mine


async def test_the_rate_limit_applies_to_the_remaining_instances(opened):
    chain, (zero, _) = await opened(
        'instance_group [ { count: 2 kind: KIND_CPU rate_limiter { resources [ { name: "R" count: 1 '
        "} ] } } ]",
        limiter=RateLimiter({}),
    )
    zero.turn(False)
    assert [await number(chain) for _ in range(4)] == [1] * 4

    zero.turn(True)
    assert {await number(chain) for _ in range(4)} == {0, 1}


async def test_a_readiness_check_calls_the_instances(opened):
    chain, (zero, one) = await opened()
    assert await chain.check()

    zero.says_ready = False
    assert await chain.check()
    one.says_ready = False
    assert not await chain.check() and chain.ready

    one.says_ready = True
    assert await chain.check()
