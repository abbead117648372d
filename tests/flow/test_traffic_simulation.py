"""Ten thousand random requests, two seeds, to models with several instances, over virtual time.

Executions take random times, fail, answer late and leave service; requests are cancelled; models are
reloaded and compete for resources. At the start of each execution a slow and simple model determines its
requests. In the end no request is lost, answered twice, or answered by a version that did not accept it.
"""

import asyncio
import random

import numpy as np
import pytest
from flow.slow_batcher import Asked, Policy, Rules, next_batch

import core
from core.errors import CoreError, Fatal, Kind, internal
from core.pipeline.endpoint_table import EndpointTable
from core.pipeline.instances.rate_limiter import GLOBAL, RateLimiter
from core.request import InferenceRequest
from core.tensor import Tensor

pytestmark = pytest.mark.usefixtures("at_once")

REQUESTS = 5_000  # of one seed
INSTANCES = 3
GAPS_US = (100, 300, 1500)
BATCH_FAILS = 29  # a batch fails if its first number is a multiple of this
FAILS = 13  # a request fails if its number is a multiple of this, unless its batch fails
LATE = 7  # the same, for an answer 5 ms after the execution
REFUSALS = ("Exceeds maximum queue size", "Request timeout expired", "request was cancelled")


class Busy(core.ModelInstance):
    """y = x, after up to 2 ms; a decoupled model answers number % 3 times."""

    placement = "callback"

    def begin(self, batch, done):
        duration_s = self.model.recorder.began(self, batch)
        self.loop.call_later(duration_s, self.end, batch, done)

    def end(self, batch, done):
        version = self.model.recorder
        version.ended(self)
        numbers = [int(request.id) for request in batch.requests]
        if version.breaks(self):
            done(Fatal("the device is gone"))
        elif numbers[0] % BATCH_FAILS == 0:
            done(internal("no luck today"))
        else:
            for i, number in enumerate(numbers):
                if number % FAILS == 0:
                    batch.fail(i, internal("no luck"))
                elif number % LATE == 0:
                    batch.defer(i)
                    self.loop.call_later(0.005, self.answer, batch, i, number)
                else:
                    self.answer(batch, i, number)
            done(None)

    def answer(self, batch, i, number):
        y = {"y": batch.requests[i].inputs["x"].array}
        if not self.model.config.model_transaction_policy.decoupled:
            batch.respond(i, y)
            return
        for _ in range(number % 3):
            batch.respond(i, y, final=False)
        batch.finish(i)


class Version:
    """One loaded model, from the view of the simulation; it replaces the Recorder.

    line      waiting requests, in the terms of the slow model
    broken    instances that have left service
    """

    def __init__(self, world, rules, demand=0):
        self.world, self.rules, self.demand = world, rules, demand
        self.line, self.running, self.broken = [], set(), set()
        self.last_end_ns = 0
        self.chain = None

    def began(self, instance, batch):
        world, now = self.world, self.world.loop.time_ns()
        numbers = [int(request.id) for request in batch.requests]
        assert instance not in self.running | self.broken
        expected = next_batch(self.line, self.rules, now)
        assert numbers == [asked.number for asked in expected]
        if self.rules.delay_ns == 0 and not self.demand:
            since = max(min(asked.at_ns for asked in expected), self.last_end_ns)
            assert now - since < 1000, "it waited while an instance was idle"
        for asked in expected:
            self.line.remove(asked)
            world.clients[asked.number].began += 1
        self.running.add(instance)
        world.used += self.demand
        assert world.used <= world.resources
        world.executions += 1
        return world.chance.random() * 0.002

    def ended(self, instance):
        self.world.used -= self.demand
        self.running.remove(instance)
        self.last_end_ns = self.world.loop.time_ns()

    def breaks(self, instance):
        if self.world.chance.random() < self.world.breaking:
            self.broken.add(instance)
            return True
        return False


class Client:
    """One request: `heard` is what came back."""

    def __init__(self, asked, version):
        self.asked, self.version = asked, version
        self.began = 0
        self.cancelled = False
        self.items = []

    def hear(self, item, final):
        self.items.append((item, final))
        self.version.world.answered += [self.asked.number] if final else []
        if self.asked in self.version.line:
            assert isinstance(item, CoreError)
            self.version.line.remove(self.asked)


class World:
    """Models that get requests of random clients.

    breaking    the probability that an execution ends its instance
    resources   resources for the instances of all models together
    """

    def __init__(self, seed, breaking=0.0, resources=0):
        self.chance = random.Random(seed)
        self.loop = asyncio.get_running_loop()
        self.endpoints = EndpointTable(None)
        self.versions = {}  # name → the one that serves
        self.retired = []
        self.clients = {}
        self.answered = []
        self.breaking, self.resources = breaking, resources
        self.used = self.executions = 0

    async def load(self, serve, name, rules, config, demand=0, **options):
        """Bring a version in service, and drain the one before it."""
        version = Version(self, rules, demand)
        version.chain = await serve(
            Busy, config, max_batch_size=rules.most_rows, recorder=version, **options
        )
        self.endpoints.put(name, {1: version.chain.handler})
        old, self.versions[name] = self.versions.get(name), version
        if old is not None:
            await old.chain.drain()
            assert not old.line
            assert not old.running
            await old.chain.close()
            self.retired.append(old)

    def send(self, number):
        name = self.chance.choice(list(self.versions))
        version = self.versions[name]
        rules = version.rules
        asked = Asked(
            number,
            self.loop.time_ns(),
            rows=self.chance.choice([1, 1, 1, 2, 3, self.chance.randint(1, rules.most_rows)]),
            width=self.chance.choice([1, 1, 1, 1, 2]),
            priority=self.chance.randint(0, len(rules.policies)),
            timeout_ns=self.chance.choice([0, 900_000, 9_000_000]),
        )
        request = InferenceRequest(
            "m",
            {"x": Tensor.of("x", np.full((asked.rows, asked.width), number, np.float32))},
            id=str(number),
            priority=asked.priority,
            timeout_us=asked.timeout_ns // 1000,
        )
        client = self.clients[number] = Client(asked, version)
        version.line.append(asked)
        try:
            reply = self.endpoints.find(name, -1)(request)
        except CoreError as error:
            client.hear(error, True)
            return
        reply.listen(client.hear)
        if self.chance.random() < 0.1:
            self.loop.call_later(self.chance.random() * 0.004, self.cancel, client, reply)

    def cancel(self, client, reply):
        client.cancelled = not reply.finished
        reply.cancel()
        if client.asked in client.version.line:  # its answer may wait for those before it
            client.version.line.remove(client.asked)

    async def ask(self):
        for number in range(1, REQUESTS + 1):
            if number % 100 == 1:
                gap_us = self.chance.choice(GAPS_US)
            self.send(number)
            await asyncio.sleep(1e-6 + self.chance.expovariate(1 / gap_us) / 1e6)
        await asyncio.sleep(60)

    def check(self, decoupled=False):
        for number, client in self.clients.items():
            assert [final for _, final in client.items].count(True) == 1, number
            assert client.items[-1][1], "something came after the end"
            last = client.items[-1][0]
            text = last.message if isinstance(last, CoreError) else ""
            if client.began == 0:
                assert text in REFUSALS or "no instance of the model is left" in text
                assert client.cancelled or "cancelled" not in text
                continue
            assert client.began == 1
            if text:
                assert last.kind is Kind.INTERNAL
                assert "no luck" in text or "device is gone" in text
                continue
            assert number % FAILS
            answers = [item.output("y").array for item, _ in client.items if item is not None]
            assert len(answers) == (number % 3 if decoupled else 1)
            shape = (client.asked.rows, client.asked.width)
            assert all(y.shape == shape and (y == number).all() for y in answers)
        assert self.used == 0
        for version in [*self.versions.values(), *self.retired]:
            assert version.chain.pending == version.chain.in_flight == 0
        assert sum(client.began for client in self.clients.values()) > REQUESTS // 2
        assert any(
            client.cancelled and not client.began for client in self.clients.values()
        )  # otherwise the simulation tests too little


GROUP = f"instance_group [ {{ count: {INSTANCES} kind: KIND_CPU }} ]"
POLICIES = {
    1: Policy(timeout_ns=3_000_000),
    2: Policy(size=20),
    3: Policy(timeout_ns=3_000_000, delays=True, may_override=True),
}
LEVELS = """
  priority_levels: 3 default_priority_level: 2
  default_queue_policy { max_queue_size: 20 }
  priority_queue_policy { key: 1 value { default_timeout_microseconds: 3000 } }
  priority_queue_policy {
    key: 3
    value { timeout_action: DELAY default_timeout_microseconds: 3000 allow_timeout_override: true }
  }
"""
CASES = {
    "alone": ("", Rules(preferred=())),
    "batches": ("dynamic_batching { }", Rules()),
    "levels": (
        f"dynamic_batching {{ {LEVELS} }}",
        Rules(policies=POLICIES, default_level=2),
    ),
    "levels and a delay": (
        f"dynamic_batching {{ {LEVELS} max_queue_delay_microseconds: 1000 "
        "preferred_batch_size: [ 4, 6 ] }",
        Rules(preferred=(4, 6), delay_ns=1_000_000, policies=POLICIES, default_level=2),
    ),
}


@pytest.mark.parametrize("case", CASES)
@pytest.mark.parametrize(("decoupled", "seed"), [(False, 1), (True, 2)])
async def test_several_instances_lose_and_double_no_request(serve, case, decoupled, seed):
    config, rules = CASES[case]
    world = World(seed)
    await world.load(serve, "m", rules, config + GROUP, decoupled=decoupled)

    await world.ask()

    world.check(decoupled)


@pytest.mark.parametrize(("decoupled", "seed"), [(False, 1), (True, 2)])
async def test_responses_keep_the_order_of_requests_if_configured(serve, decoupled, seed):
    world = World(seed)
    config = "dynamic_batching { preserve_ordering: true }" + GROUP
    await world.load(serve, "m", Rules(), config, decoupled=decoupled)

    await world.ask()

    world.check(decoupled)
    assert world.answered == list(range(1, REQUESTS + 1))


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("case", ["alone", "levels and a delay"])
async def test_reloads_and_failed_instances_lose_no_request(serve, case, seed):
    config, rules = CASES[case]
    world = World(seed, breaking=0.01)
    await world.load(serve, "m", rules, config + GROUP)

    async def reload():
        while True:
            await asyncio.sleep(world.chance.random() * 0.2)
            await world.load(serve, "m", rules, config + GROUP)

    reloading = asyncio.create_task(reload())
    await world.ask()
    reloading.cancel()

    world.check()
    assert len(world.retired) > 10
    assert sum(len(version.broken) for version in world.retired) > INSTANCES


@pytest.mark.parametrize("seed", [1, 2])
async def test_resources_are_never_exceeded_and_every_model_gets_its_turn(serve, seed):
    world = World(seed, resources=4)
    limiter = RateLimiter({"R": {GLOBAL: 4}})
    for demand, (name, (config, rules)) in enumerate(CASES.items(), start=1):
        group = (
            f"instance_group [ {{ count: 2 kind: KIND_CPU rate_limiter {{ priority: {1 + demand % 2} "
            f'resources [ {{ name: "R" count: {demand} }} ] }} }} ]'
        )
        await world.load(serve, name, rules, config + group, demand, limiter=limiter)

    await world.ask()

    world.check()
