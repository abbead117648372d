"""Ten thousand random requests, two seeds, to one instance, compared with a slow, simple model; virtual time.

The model predicts which requests run together and when, which are refused or cancelled in time, and when
each client gets its response. All predictions must hold.
"""

import asyncio
import random
from itertools import pairwise

import numpy as np
import pytest
from flow.slow_batcher import (
    CANCELLED,
    EXECUTED,
    EXPIRED,
    FULL,
    Asked,
    Policy,
    Rules,
    predict,
)

import core
from core.errors import CoreError, Kind, internal
from core.request import InferenceRequest
from core.tensor import Tensor

REQUESTS = 5_000  # of one seed
GAPS_US = (120, 400, 1500)  # between two requests, on average, in rush hours and quiet ones
BATCH_FAILS = 29  # a batch fails if its first number is a multiple of this
FAILS = 13  # a request fails if its number is a multiple of this, unless its batch fails
NEAR_NS = 10_000  # tolerance for a thousand roundings of virtual time


def duration_ns(numbers):
    """Of the execution of these requests: up to 0.6 ms for one, 2.7 ms for eight."""
    return 1 + sum(numbers) * 7919 % (300_000 * (1 + len(numbers)))


class Echo(core.ModelInstance):
    """y = x, which holds the number of the request."""

    async def execute(self, batch):
        numbers = [int(request.id) for request in batch.requests]
        loop = asyncio.get_running_loop()
        self.model.recorder.batches.append((loop.time_ns(), numbers))
        await asyncio.sleep(duration_ns(numbers) / 1e9)
        if numbers[0] % BATCH_FAILS == 0:
            raise ValueError("no luck today")
        for i, number in enumerate(numbers):
            if number % FAILS == 0:
                batch.fail(i, internal("no luck"))
        return {"y": batch["x"]}


def a_script(seed, rules, begin_ns):
    """Random requests, some of which are cancelled within 4 ms."""
    chance = random.Random(seed)
    script = []
    at_ns = begin_ns
    for number in range(1, REQUESTS + 1):
        if number % 100 == 1:
            gap_us = chance.choice(GAPS_US)
        at_ns += 1 + int(chance.expovariate(1 / gap_us) * 1000)
        script.append(
            Asked(
                number,
                at_ns,
                rows=min(
                    rules.most_rows or 1, chance.choice([1, 1, 1, 2, 3, chance.randint(1, 8)])
                ),
                width=chance.choice([1, 1, 1, 1, 1, 2]),
                priority=chance.randint(0, len(rules.policies)),
                timeout_ns=chance.choice([0, 0, 900_000, 1_500_000, 9_000_000]),
                cancelled_ns=at_ns + chance.randint(1, 4_000_000)
                if chance.random() < 0.1
                else float("inf"),
            )
        )
    return script


async def play(script, chain, changes=()):
    """Run the script; return the events of each client: number → list of (item, time).

    changes   (time, function to call then)
    """
    loop = asyncio.get_running_loop()
    for at_ns, change in changes:
        loop.call_at(at_ns / 1e9, change)
    heard = {asked.number: [] for asked in script}
    for asked in script:
        await asyncio.sleep(asked.at_ns / 1e9 - loop.time())
        shape = (asked.rows, asked.width) if chain.signature.max_batch_size else (asked.width,)
        request = InferenceRequest(
            "m",
            {"x": Tensor.of("x", np.full(shape, asked.number, np.float32))},
            id=str(asked.number),
            priority=asked.priority,
            timeout_us=asked.timeout_ns // 1000,
        )
        answers = heard[asked.number]
        try:
            reply = chain.handler(request)
        except CoreError as error:
            answers.append((error, loop.time_ns()))
            continue
        reply.listen(lambda item, final, to=answers: to.append((item, loop.time_ns())))
        if asked.cancelled_ns != float("inf"):
            loop.call_at(asked.cancelled_ns / 1e9, reply.cancel)
    await asyncio.sleep(60)
    return heard


def what(item, asked, batch):
    """Return a response in the terms of the slow model; the response of an execution must be right."""
    if not isinstance(item, CoreError):
        y = item.output("y").array
        assert y.size == asked.rows * asked.width
        assert (y == asked.number).all()
        assert asked.number % FAILS
        return EXECUTED
    if "no luck" in item.message:
        assert batch[0] % BATCH_FAILS == 0 or asked.number % FAILS == 0
        return EXECUTED
    return {
        (Kind.UNAVAILABLE, "Exceeds maximum queue size"): FULL,
        (Kind.UNAVAILABLE, "Request timeout expired"): EXPIRED,
        (Kind.CANCELLED, "request was cancelled"): CANCELLED,
    }[item.kind, item.message]


def compare(script, rules, executed, heard, changes=()):
    """Whether what has happened is what had to, for each request and in the order of time."""
    executions, expected = predict(script, rules, duration_ns, changes)
    for (at_ns, batch), (expected_ns, expected_batch) in zip(executed, executions, strict=False):
        assert batch == expected_batch, f"at {at_ns - script[0].at_ns} ns"
        assert abs(at_ns - expected_ns) < NEAR_NS, batch
    assert len(executed) == len(executions)
    batch_of = {number: batch for _, batch in executed for number in batch}
    for asked in script:
        assert len(heard[asked.number]) == 1, f"{asked}: {heard[asked.number]}"
        item, at_ns = heard[asked.number][0]
        expected_what, expected_ns = expected[asked.number]
        assert what(item, asked, batch_of.get(asked.number)) == expected_what, asked
        assert abs(at_ns - expected_ns) < NEAR_NS, asked
    return [word for word, _ in expected.values()]


PATIENCE = "default_queue_policy { default_timeout_microseconds: 2000 %s }"
TIMED = Policy(timeout_ns=2_000_000)
LEVELS = """
  priority_levels: 3 default_priority_level: 2 max_queue_delay_microseconds: 1000
  default_queue_policy { max_queue_size: 20 }
  priority_queue_policy { key: 1 value { default_timeout_microseconds: 3000 } }
  priority_queue_policy {
    key: 3
    value { timeout_action: DELAY default_timeout_microseconds: 3000 allow_timeout_override: true }
  }
"""

CASES = {
    "every request alone": ("", Rules(preferred=())),
    "batches": ("dynamic_batching { }", Rules()),
    "a delay": (
        "dynamic_batching { max_queue_delay_microseconds: 1000 }",
        Rules(delay_ns=1_000_000),
    ),
    "preferred sizes": (
        "dynamic_batching { preferred_batch_size: [ 3, 6 ] }",
        Rules(preferred=(3, 6)),
    ),
    "preferred sizes and a delay": (
        "dynamic_batching { preferred_batch_size: [ 2, 4 ] max_queue_delay_microseconds: 1500 }",
        Rules(preferred=(2, 4), delay_ns=1_500_000),
    ),
    "refused when late": (
        "dynamic_batching { %s }" % (PATIENCE % ""),
        Rules(policies={0: TIMED}),
    ),
    "refused when late, and in a hurry": (
        "dynamic_batching { max_queue_delay_microseconds: 1000 %s }"
        % (PATIENCE % "allow_timeout_override: true max_queue_size: 12"),
        Rules(delay_ns=1_000_000, policies={0: Policy(2_000_000, may_override=True, size=12)}),
    ),
    "delayed when late": (
        "dynamic_batching { %s }"
        % (PATIENCE % "timeout_action: DELAY allow_timeout_override: true"),
        Rules(policies={0: Policy(2_000_000, delays=True, may_override=True)}),
    ),
    "levels": (
        f"dynamic_batching {{ {LEVELS} }}",
        Rules(
            delay_ns=1_000_000,
            policies={
                1: Policy(timeout_ns=3_000_000),
                2: Policy(size=20),
                3: Policy(timeout_ns=3_000_000, delays=True, may_override=True),
            },
            default_level=2,
        ),
    ),
    "no batch dimension": (
        "dynamic_batching { %s }" % (PATIENCE % "max_queue_size: 10"),
        Rules(most_rows=0, preferred=(), policies={0: Policy(2_000_000, size=10)}),
    ),
}


@pytest.mark.parametrize("seed", [1, 2])
@pytest.mark.parametrize("case", CASES)
async def test_batches_and_refusals_are_those_of_the_slow_model(serve, case, seed):
    config, rules = CASES[case]
    chain = await serve(Echo, config, max_batch_size=rules.most_rows)
    script = a_script(seed, rules, asyncio.get_running_loop().time_ns())

    heard = await play(script, chain)

    words = compare(script, rules, chain.recorder.batches, heard)
    assert chain.pending == chain.in_flight == 0
    assert words.count(EXECUTED) > REQUESTS // 4  # otherwise the simulation tests too little
    assert words.count(CANCELLED) > REQUESTS // 200


# Requests that are delayed have no timeout of their own: late at the same moment, they keep their order.
LIVE = [
    *(CASES[each] for each in ("batches", "a delay", "preferred sizes", "refused when late")),
    CASES["preferred sizes and a delay"],
    CASES["refused when late, and in a hurry"],
    (
        "dynamic_batching { %s }" % (PATIENCE % "timeout_action: DELAY"),
        Rules(policies={0: Policy(2_000_000, delays=True)}),
    ),
    (
        f"dynamic_batching {{ {LEVELS.replace('allow_timeout_override: true', '')} }}",
        Rules(
            delay_ns=1_000_000,
            policies={
                1: Policy(timeout_ns=3_000_000),
                2: Policy(size=20),
                3: Policy(timeout_ns=3_000_000, delays=True),
            },
            default_level=2,
        ),
    ),
    (
        "dynamic_batching { priority_levels: 2 default_priority_level: 1 }",
        Rules(policies={1: Policy(), 2: Policy()}, default_level=1),
    ),
]


@pytest.mark.parametrize("seed", [1, 2])
async def test_a_thousand_live_changes_lose_no_request_and_hold_for_those_that_wait(
    serve, configure, seed
):
    chain = await serve(Echo, LIVE[0][0])
    chance = random.Random(seed)
    script = a_script(seed, LIVE[-2][1], asyncio.get_running_loop().time_ns())
    gaps = [(one.at_ns, two.at_ns) for one, two in pairwise(script)]
    wide = [gap for gap in gaps if gap[1] - gap[0] > 4 * NEAR_NS]
    moments = sorted((one + two) // 2 for one, two in chance.sample(wide, 1000))
    chosen = [chance.choice(LIVE) for _ in moments]

    heard = await play(
        script,
        chain,
        [
            (at_ns, lambda text=text: configure(chain, text))
            for at_ns, (text, _) in zip(moments, chosen, strict=True)
        ],
    )

    changes = [(at_ns, rules) for at_ns, (_, rules) in zip(moments, chosen, strict=True)]
    words = compare(script, LIVE[0][1], chain.recorder.batches, heard, changes)
    assert chain.pending == chain.in_flight == 0
    assert min(map(words.count, (EXECUTED, CANCELLED, EXPIRED, FULL))) > 10
