"""Other instances for a model that serves: nothing is dropped, over virtual time."""

import asyncio

import numpy as np
import pytest
from flow.instance_groups import events, group, groups

import core
from core.errors import CoreError, Kind
from core.pipeline.instances.rate_limiter import GLOBAL, RateLimiter
from core.request import InferenceRequest
from core.tensor import Tensor


def ask(chain, value=1.0):
    x = Tensor.of("x", np.full((1, 1), value, np.float32))
    return chain.handler(InferenceRequest("m", {"x": x}))


async def y(reply):
    return float((await reply).output("y").array.ravel()[0])


async def closed(chain, *names):
    """Instances have closed, as soon as they had answered."""
    await asyncio.sleep(0.001)
    assert {("close", name) for name in names} <= set(chain.recorder.batches)


ALONE = ""
BATCHED = "dynamic_batching { }"


@pytest.mark.parametrize("config", [ALONE, BATCHED])
async def test_new_instances_execute_waiting_requests(serve, config, prepare, recording):
    chain = await serve(recording, config + groups(group(1)), max_batch_size=1 if config else 8)
    prepared = await prepare(chain, group(3))
    start = asyncio.get_running_loop().time()
    replies = [ask(chain, value) for value in range(5)]
    await asyncio.sleep(0.005)

    prepared.commit()

    assert [await y(reply) for reply in replies] == [0, 1, 2, 3, 4]
    executed = [name for event, name in chain.recorder.batches if event == "execute"]
    assert executed[:3] == ["g_0", "g_1", "g_2"]  # the two came while the first was busy
    assert asyncio.get_running_loop().time() - start == pytest.approx(0.025, abs=0.001)
    await chain.close()


@pytest.mark.parametrize("config", [ALONE, BATCHED])
async def test_leaving_instances_finish_their_batches(serve, config, change, recording):
    chain = await serve(recording, config + groups(group(3)), max_batch_size=1 if config else 8)
    replies = [ask(chain, value) for value in range(6)]
    await asyncio.sleep(0.005)
    chain.recorder.batches.clear()

    await change(chain, group(1))
    assert ("close", "g_1") not in chain.recorder.batches

    assert [await y(reply) for reply in replies] == [0, 1, 2, 3, 4, 5]
    await closed(chain, "g_1", "g_2")
    assert events(chain, "execute") == ["g_0"] * 3
    await chain.close()


async def test_until_the_change_is_committed_only_the_old_instances_serve(
    serve, prepare, recording
):
    chain = await serve(recording, groups(group(1)))
    chain.recorder.batches.clear()

    prepared = await prepare(chain, group(2, "new", "kind: KIND_MODEL"))
    replies = [ask(chain) for _ in range(3)]
    await asyncio.sleep(0.015)
    assert set(chain.recorder.batches) == {
        ("open", "new_0"),
        ("open", "new_1"),
        ("execute", "g_0"),
    }
    prepared.commit()
    await asyncio.gather(*replies)

    assert events(chain, "execute") == ["g_0", "g_0", "new_0"]
    await chain.close()


async def test_an_abandoned_change_changes_nothing(serve, prepare, recording):
    chain = await serve(recording, groups(group(2)))
    running = ask(chain)

    prepared = await prepare(chain, group(3))
    await prepared.abandon()
    await asyncio.gather(running, *(ask(chain) for _ in range(4)))

    assert ("close", "g_2") in chain.recorder.batches
    assert set(events(chain, "execute")) == {"g_0", "g_1"}
    await chain.close()


async def test_an_instance_that_cannot_open_changes_nothing(serve, prepare, recording):
    class Three(recording):
        def open(self):
            super().open()
            if self.name == "g_3":
                raise ValueError("no fourth")

    chain = await serve(Three, groups(group(2)))
    running = ask(chain, 5)

    with pytest.raises(CoreError, match=r"open\(\) at .*: ValueError: no fourth"):
        await prepare(chain, group(4))

    assert await y(running) == 5
    assert events(chain, "close") == ["g_2"]
    await asyncio.gather(*(ask(chain) for _ in range(4)))
    assert set(events(chain, "execute")) == {"g_0", "g_1"}
    await chain.close()


async def test_instances_that_are_wanted_by_another_name_stay(serve, change, recording):
    chain = await serve(recording, groups(group(2)))
    chain.recorder.batches.clear()

    await change(chain, group(1, "one"), group(1, "other"))
    await asyncio.gather(*(ask(chain) for _ in range(2)))

    assert set(chain.recorder.batches) == {("execute", "g_0"), ("execute", "g_1")}
    await chain.close()


@pytest.mark.parametrize(
    "more",
    [
        "kind: KIND_MODEL",
        'host_policy: "other"',
        "rate_limiter { priority: 2 }",
        "secondary_devices [ { kind: KIND_NVDLA device_id: 1 } ]",
    ],
)
async def test_an_instance_with_other_settings_is_replaced(serve, more, change, recording):
    chain = await serve(recording, groups(group(1)))
    chain.recorder.batches.clear()

    replies = [ask(chain) for _ in range(3)]
    await change(chain, group(1, more=more))
    await asyncio.gather(*replies)
    await closed(chain, "g_0")

    assert [event for event, _ in chain.recorder.batches].count("open") == 1
    await chain.close()


async def test_new_instances_are_warm_before_they_serve(serve, prepare, recording):
    sample = (
        'model_warmup { name: "s" batch_size: 1 inputs { key: "x" value: { data_type: TYPE_FP32 '
        "dims: [ 1 ] zero_data: true } } }"
    )
    chain = await serve(recording, sample + groups(group(1)))
    chain.recorder.batches.clear()

    prepared = await prepare(chain, group(3))
    assert events(chain, "execute") == ["g_1", "g_2"]
    before = chain.statistics.inference_count
    prepared.commit()
    await asyncio.gather(*(ask(chain) for _ in range(3)))

    assert events(chain, "execute") == ["g_0", "g_1", "g_2"]
    assert chain.statistics.inference_count == before + 3  # they go on counting
    assert chain.in_flight == 0
    await chain.close()


async def test_an_instance_out_of_service_is_replaced(serve, change, recording):
    class Once(recording):
        async def execute(self, batch):
            self.note("execute")
            if batch["x"][0, 0] == 13:
                raise core.Fatal("gone")
            return {"y": batch["x"]}

    chain = await serve(Once, groups(group(1)))
    with pytest.raises(CoreError, match="gone"):
        await ask(chain, 13)
    with pytest.raises(CoreError, match="no instance of the model is left: gone"):
        await ask(chain)

    await change(chain, group(1))

    assert chain.ready
    assert await y(ask(chain, 4)) == 4
    await closed(chain, "g_0")
    await chain.close()


async def test_a_decoupled_model_answers_to_the_end_before_its_instance_closes(serve, change):
    class Slow(core.ModelInstance):
        """Takes a request and answers later, on command of the test."""

        async def execute(self, batch):
            for i in range(len(batch.requests)):
                self.model.recorder.batches.append((batch, i, self.name))

        def close(self):
            self.model.recorder.closed += 1

    chain = await serve(Slow, groups(group(2)), decoupled=True)
    replies = [ask(chain) for _ in range(2)]
    await asyncio.sleep(0.001)
    (leaving,) = [(b, i) for b, i, name in chain.recorder.batches if name == "g_1"]

    await change(chain, group(1))
    for _ in range(50):
        await asyncio.sleep(0.001)
    assert chain.recorder.closed == 0
    leaving[0].finish(leaving[1])
    await asyncio.sleep(0.001)

    assert chain.recorder.closed == 1
    assert chain.in_flight == 1
    for batch, i, _ in chain.recorder.batches:
        batch.finish(i)
    for reply in replies:
        assert [each async for each in reply] == []
    await chain.close()


async def test_a_callback_instance_closes_after_its_last_batch(serve, change):
    class Ahead(core.ModelInstance):
        placement, ahead = "callback", 3

        def begin(self, batch, done):
            self.model.recorder.batches.append((batch, done, self.name))

        def close(self):
            self.model.recorder.closed += 1

    chain = await serve(Ahead, groups(group(2)))
    replies = [ask(chain, value) for value in range(6)]
    await change(chain, group(1))

    begun = chain.recorder.batches
    assert sorted(name for _, _, name in begun) == ["g_0"] * 3 + ["g_1"] * 3
    for batch, done, name in list(begun):
        if name == "g_1":
            assert chain.recorder.closed == 0
            batch.respond(0, {"y": batch["x"]})
            done(None)
    await asyncio.sleep(0.001)
    assert chain.recorder.closed == 1
    for batch, done, name in begun:
        if name == "g_0":
            batch.respond(0, {"y": batch["x"]})
            done(None)

    assert [await y(reply) for reply in replies] == [0, 1, 2, 3, 4, 5]
    await chain.close()


async def test_a_passive_instance_is_open_and_gets_nothing(serve, change, recording):
    chain = await serve(recording, groups(group(1), group(1, "spare", "passive: true")))
    assert events(chain, "open") == ["g_0", "spare_0"]

    await asyncio.gather(*(ask(chain) for _ in range(3)))
    assert set(events(chain, "execute")) == {"g_0"}
    await change(chain, group(1), group(1, "spare"))  # another one: as in Triton
    await asyncio.gather(*(ask(chain) for _ in range(2)))

    assert events(chain, "execute") == ["g_0", "spare_0"]
    await chain.close()


async def test_a_model_with_passive_instances_only_refuses(serve, recording):
    chain = await serve(recording, groups(group(2, more="passive: true")))

    with pytest.raises(CoreError, match="no instance of the model is left: all are passive") as e:
        await ask(chain)

    assert e.value.kind is Kind.UNAVAILABLE
    assert not chain.ready
    await chain.close()
    assert events(chain, "close") == ["g_0", "g_1"]


def limited(count, needs):
    return group(count, more=f'rate_limiter {{ resources [ {{ name: "R" count: {needs} }} ] }}')


async def test_resources_of_instances_that_leave_are_free_again(serve, change, recording):
    limiter = RateLimiter({"R": {GLOBAL: 4}})
    chain = await serve(recording, groups(limited(1, 4)), limiter=limiter)
    other = await serve(recording, groups(limited(1, 4)), limiter=limiter)
    replies = [ask(chain, value) for value in range(4)] + [ask(other, value) for value in (4, 5)]
    await asyncio.sleep(0.005)

    await change(chain, limited(2, 1))

    assert [await y(reply) for reply in replies] == [0, 1, 2, 3, 4, 5]
    assert not any(limiter._used.values())
    await change(chain, limited(1, 1))
    assert await y(ask(other, 6)) == 6
    await chain.close()
    await other.close()


async def test_a_demand_that_can_never_be_met_changes_nothing(serve, prepare, recording):
    chain = await serve(recording, groups(limited(1, 2)), limiter=RateLimiter({"R": {GLOBAL: 2}}))

    with pytest.raises(CoreError, match="limited to 2"):
        await prepare(chain, limited(1, 3))

    assert await y(ask(chain, 3)) == 3
    await chain.close()
