"""Other settings for a chain that serves: what waits follows them, what runs goes on; over virtual time."""

import asyncio

import numpy as np
import pytest

import core
from core.caches import LocalCache
from core.errors import CoreError
from core.pipeline.instances.rate_limiter import GLOBAL, RateLimiter
from core.request import SEQUENCE_END, SEQUENCE_START, InferenceRequest
from core.tensor import Tensor


class Echo(core.ModelInstance):
    """y = x, after 10 ms."""

    async def execute(self, batch):
        self.model.recorder.batches.append([request.id for request in batch.requests])
        await asyncio.sleep(0.010)
        return {"y": batch["x"]}


class Again(core.ModelInstance):
    """y = x, in the second execution of each request; each takes 10 ms."""

    async def execute(self, batch):
        self.model.recorder.batches.append([request.id for request in batch.requests])
        await asyncio.sleep(0.010)
        for i, request in enumerate(batch.requests):
            if [request.id] in self.model.recorder.batches[:-1]:
                batch.respond(i, {"y": request.inputs["x"].array})
            else:
                batch.reschedule(i)


def ask(chain, id="", **fields):
    x = Tensor.of("x", np.zeros((1, 1), np.float32))
    return chain.handler(InferenceRequest("m", {"x": x}, id=id, **fields))


async def what(reply):
    try:
        await reply
    except CoreError as error:
        return error.message
    return "answered"


def batching(text):
    return f"dynamic_batching {{ {text} }}"


def limited(count, priority=1, name="R"):
    resources = f'resources [ {{ name: "{name}" count: {count} }} ] priority: {priority}'
    return f"instance_group [ {{ count: 1 kind: KIND_CPU rate_limiter {{ {resources} }} }} ]"


async def test_a_shorter_delay_starts_what_has_waited_for_longer(serve, configure):
    chain = await serve(Echo, batching("max_queue_delay_microseconds: 1000000"))
    reply = ask(chain, "a")
    await asyncio.sleep(0.030)
    assert chain.recorder.batches == []

    configure(chain, batching("max_queue_delay_microseconds: 20000"))

    assert chain.recorder.batches == [] and chain.pending == 0
    assert await what(reply) == "answered"
    assert chain.recorder.batches == [["a"]]


async def test_a_longer_delay_holds_what_has_not_begun(serve, configure):
    chain = await serve(Echo, batching("max_queue_delay_microseconds: 20000"))
    begun = asyncio.get_running_loop().time()
    reply = ask(chain)

    configure(chain, batching("max_queue_delay_microseconds: 50000"))
    await reply

    assert asyncio.get_running_loop().time() - begun == pytest.approx(0.060, abs=0.001)


async def test_a_preferred_size_that_is_reached_runs_at_once(serve, configure):
    chain = await serve(Echo, batching("max_queue_delay_microseconds: 1000000"))
    replies = [ask(chain, id) for id in "abc"]
    await asyncio.sleep(0.001)

    configure(chain, batching("preferred_batch_size: 2 max_queue_delay_microseconds: 1000000"))
    await asyncio.gather(*map(what, replies[:2]))

    assert chain.recorder.batches == [["a", "b"]]
    assert chain.pending == 1
    replies[2].cancel()


async def test_a_smaller_queue_refuses_new_requests_and_keeps_those_that_wait(serve, configure):
    chain = await serve(Echo, batching(""), max_batch_size=1)
    replies = [ask(chain) for _ in range(5)]
    await asyncio.sleep(0)

    configure(chain, batching("default_queue_policy { max_queue_size: 2 }"))

    assert chain.pending == 4
    with pytest.raises(CoreError, match="Exceeds maximum queue size"):
        ask(chain)
    assert [await what(each) for each in replies] == ["answered"] * 5


@pytest.mark.parametrize(
    ("action", "heard", "order"),
    [
        ("REJECT", ["answered", "Request timeout expired", "Request timeout expired"], "a"),
        ("DELAY", ["answered"] * 3, "abc"),
    ],
)
async def test_a_new_timeout_counts_from_the_arrival(serve, configure, action, heard, order):
    chain = await serve(Echo, batching(""), max_batch_size=1)
    replies = [ask(chain, id) for id in "abc"]
    await asyncio.sleep(0.005)

    policy = f"timeout_action: {action} default_timeout_microseconds: 4000"
    configure(chain, batching(f"default_queue_policy {{ {policy} }}"))

    assert [await what(each) for each in replies] == heard
    assert chain.recorder.batches == [[id] for id in order]
    assert chain.in_flight == chain.pending == 0


async def test_without_the_timeout_what_waits_is_not_refused(serve, configure):
    timed = "default_queue_policy { default_timeout_microseconds: 4000 }"
    chain = await serve(Echo, batching(timed), max_batch_size=1)
    replies = [ask(chain) for _ in range(3)]
    await asyncio.sleep(0.003)

    configure(chain, batching(""))

    assert [await what(each) for each in replies] == ["answered"] * 3


async def test_new_levels_sort_what_waits(serve, configure):
    chain = await serve(Echo, batching(""), max_batch_size=1)
    first = ask(chain, "runs", priority=2)
    await asyncio.sleep(0)
    rest = [
        ask(chain, f"{priority}{n}", priority=priority) for n in range(2) for priority in (2, 1)
    ]
    await asyncio.sleep(0)

    configure(chain, batching("priority_levels: 2 default_priority_level: 2"))

    assert chain.pending_by_priority == {1: 2, 2: 2}
    assert [await what(each) for each in [first, *rest]] == ["answered"] * 5
    assert [id for (id,) in chain.recorder.batches] == ["runs", "10", "11", "20", "21"]


async def test_without_levels_what_waits_runs_in_the_order_of_arrival(serve, configure):
    levels = "priority_levels: 3 default_priority_level: 2"
    chain = await serve(Echo, batching(levels), max_batch_size=1)
    replies = [ask(chain, "runs")]
    await asyncio.sleep(0)
    for id, priority in (("a", 3), ("b", 1), ("c", 0), ("d", 3)):
        replies.append(ask(chain, id, priority=priority))
        await asyncio.sleep(0.0001)

    configure(chain, batching("max_queue_delay_microseconds: 0"))

    assert chain.pending_by_priority == {}
    assert [await what(each) for each in replies] == ["answered"] * 5
    assert [id for (id,) in chain.recorder.batches] == ["runs", "a", "b", "c", "d"]


async def test_a_request_that_runs_again_after_a_change_is_neither_refused_nor_late(
    serve, configure
):
    chain = await serve(Again, batching(""), max_batch_size=1)
    replies = [ask(chain, "a", priority=3)]
    await asyncio.sleep(0.005)

    policy = "max_queue_size: 1 default_timeout_microseconds: 1000"
    levels = f"priority_levels: 3 default_priority_level: 1 default_queue_policy {{ {policy} }}"
    configure(chain, batching(levels))
    replies.append(ask(chain, "b", priority=3))

    assert await what(replies[0]) == "answered"
    assert [id for (id,) in chain.recorder.batches] == ["a", "a"]
    assert await what(replies[1]) == "Request timeout expired"

    configure(chain, batching(""))
    assert await what(ask(chain, "c")) == "answered"


async def test_order_of_responses_on_and_off(serve, configure):
    chain = await serve(Echo, batching("max_queue_delay_microseconds: 1000"))
    kinds = [type(each).__name__ for each in chain.handlers]

    configure(chain, batching("preserve_ordering: true"))
    ordered = ask(chain)
    assert [type(each).__name__ for each in chain.handlers] == ["PreserveOrder", *kinds]
    configure(chain, batching("preserve_ordering: false"))

    assert [type(each).__name__ for each in chain.handlers] == kinds
    assert await what(ordered) == await what(ask(chain)) == "answered"
    assert chain.in_flight == 0


async def test_the_cache_on_and_off_within_layers(serve, configure, monkeypatch):
    monkeypatch.setattr(
        "core.pipeline.chain.layers_of",
        lambda model: [lambda inner: lambda request: inner(request)],
    )
    chain = await serve(Echo, "", cache=LocalCache(10_000))
    layered = chain.handlers[0]
    await ask(chain)
    await ask(chain)
    assert len(chain.recorder.batches) == 2

    configure(chain, "response_cache { enable: true }")
    await ask(chain)
    await ask(chain)
    assert len(chain.recorder.batches) == 3
    assert chain.statistics.cache_hit.count == 1
    configure(chain, "response_cache { enable: false }")
    await ask(chain)

    assert len(chain.recorder.batches) == 4
    assert chain.handlers[0] is layered
    assert chain.statistics.success.count == 5
    assert chain.in_flight == 0


async def test_a_running_execution_holds_its_resources_when_the_demand_changes(serve, configure):
    limiter = RateLimiter({"R": {GLOBAL: 4}})
    one = await serve(Echo, limited(4), limiter=limiter)
    other = await serve(Echo, limited(2), limiter=limiter)
    first = ask(one, "first")
    await asyncio.sleep(0.005)
    second = ask(other, "second")

    configure(one, limited(1))

    await asyncio.sleep(0)
    assert other.recorder.batches == []
    assert await what(first) == await what(second) == "answered"
    third, fourth = ask(one, "third"), ask(other, "fourth")
    await asyncio.sleep(0.001)
    assert (one.recorder.batches[-1], other.recorder.batches[-1]) == (["third"], ["fourth"])
    assert await what(third) == await what(fourth) == "answered"


async def test_a_demand_that_the_limiter_refuses_changes_nothing(serve, configure):
    limiter = RateLimiter({"R": {GLOBAL: 4}})
    chain = await serve(Echo, limited(2), limiter=limiter)
    other = await serve(Echo, limited(2), limiter=limiter)

    with pytest.raises(CoreError, match='Resource count for "r" is limited to 4'):
        configure(chain, limited(5) + " response_cache { enable: true }")

    replies = [ask(chain), ask(other)]
    await asyncio.sleep(0.001)
    assert len(chain.recorder.batches) == len(other.recorder.batches) == 1
    assert [await what(each) for each in replies] == ["answered"] * 2


async def test_a_changed_demand_keeps_the_instances_at_a_later_change_of_groups(
    serve, configure, prepare
):
    limiter = RateLimiter({})
    chain = await serve(Echo, limited(2), limiter=limiter)
    before = chain.opened

    configure(chain, limited(1, priority=3))
    group = limited(1, priority=3).removeprefix("instance_group [").removesuffix("]")
    change = await prepare(chain, group)

    assert [each.instance for each in change.kept] == before
    assert change.opened == change.leaving == []


def sequences(delay_us, idle_us=1_000_000):
    return f"""
        sequence_batching {{
            oldest {{ max_candidate_sequences: 4 max_queue_delay_microseconds: {delay_us} }}
            max_sequence_idle_microseconds: {idle_us}
            control_input [ {{ name: "START" control [ {{
                kind: CONTROL_SEQUENCE_START int32_false_true: [ 0, 1 ] }} ] }} ]
        }}
    """


async def test_sequences_follow_a_new_delay_and_keep_their_slots(serve, configure):
    chain = await serve(Echo, sequences(1_000_000))
    begun = ask(chain, "a", correlation_id=7, flags=SEQUENCE_START)
    await asyncio.sleep(0.010)
    assert chain.recorder.batches == []

    configure(chain, sequences(5_000))

    assert await what(begun) == "answered"
    assert await what(ask(chain, "b", correlation_id=7, flags=SEQUENCE_END)) == "answered"
    assert chain.in_flight == 0


async def test_a_shorter_idle_time_ends_sequences_that_wait_for_requests(serve, configure):
    chain = await serve(Echo, sequences(0))
    await ask(chain, correlation_id=7, flags=SEQUENCE_START)
    await asyncio.sleep(0.100)

    configure(chain, sequences(0, idle_us=50_000))

    with pytest.raises(CoreError, match="must specify the START flag"):
        await ask(chain, correlation_id=7)


async def test_statistics_go_on(serve, configure):
    chain = await serve(Echo, batching(""))
    await ask(chain)
    statistics = chain.statistics

    configure(chain, batching("max_queue_delay_microseconds: 100"))
    await ask(chain)

    assert chain.statistics is statistics
    assert statistics.success.count == 2
