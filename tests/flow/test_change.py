"""Other instances for a model that serves: nothing is dropped, over virtual time."""

import asyncio

import numpy as np
import pytest

import core
from core import config as configuration
from core.config import ModelConfig
from core.errors import CoreError, Kind
from core.pipeline.instances.limit import GLOBAL, RateLimiter
from core.request import SEQUENCE_END, SEQUENCE_START, InferenceRequest
from core.tensor import Tensor


class Diary(core.ModelInstance):
    """Answers with its input after 10 ms. Notes who executes, who opens and who closes."""

    def open(self):
        self.note("open")

    def note(self, event):
        self.model.recorder.batches.append((event, self.name))

    async def execute(self, batch):
        self.note("execute")
        await asyncio.sleep(0.010)
        return {"y": batch["x"]}

    def close(self):
        self.note("close")


def events(chain, kind):
    """Names of the instances that noted this, in order; forgets all notes."""
    found = sorted(name for event, name in chain.recorder.batches if event == kind)
    chain.recorder.batches.clear()
    return found


def group(count, name="g", more=""):
    return (
        f'{{ name: "{name}" count: {count} {"" if "kind" in more else "kind: KIND_CPU"} {more} }}'
    )


def groups(*found):
    return f"instance_group [ {', '.join(found)} ]"


async def prepare(chain, *found):
    """The change to these groups, not yet committed. Instances open on other threads: until they have
    virtual time goes on to what comes next, whenever that is.
    """
    wanted = configuration.parse_text(f'name: "m" backend: "test" {groups(*found)}', "test")
    configuration.normalise(wanted, {}, [])
    config = ModelConfig()
    config.CopyFrom(chain.model.config)
    config.ClearField("instance_group")
    config.instance_group.extend(wanted.instance_group)
    chain.model.config = config
    return await chain.prepare(chain.model)


async def change(chain, *found):
    (await prepare(chain, *found)).commit()
    await asyncio.sleep(0)


def ask(chain, value=1.0, sequence=0, flags=0):
    x = Tensor.of("x", np.full((1, 1), value, np.float32))
    return chain.handler(InferenceRequest("m", {"x": x}, correlation_id=sequence, flags=flags))


async def y(reply):
    return float((await reply).output("y").array.ravel()[0])


async def closed(chain, *names):
    """Let go on until instances have closed, which happens on other threads."""
    for _ in range(2000):
        if {("close", name) for name in names} <= set(chain.recorder.batches):
            return
        await asyncio.get_running_loop().run_in_executor(None, lambda: None)
    raise AssertionError(f"{names} have not closed: {chain.recorder.batches}")


ALONE = ""
BATCHED = "dynamic_batching { }"


@pytest.mark.parametrize("config", [ALONE, BATCHED])
async def test_more_instances_take_what_waits(serve, config):
    chain = await serve(Diary, config + groups(group(1)), max_batch_size=1 if config else 8)
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
async def test_fewer_instances_finish_what_they_hold(serve, config):
    chain = await serve(Diary, config + groups(group(3)), max_batch_size=1 if config else 8)
    replies = [ask(chain, value) for value in range(6)]
    await asyncio.sleep(0.005)
    chain.recorder.batches.clear()

    await change(chain, group(1))
    assert ("close", "g_1") not in chain.recorder.batches

    assert [await y(reply) for reply in replies] == [0, 1, 2, 3, 4, 5]
    await closed(chain, "g_1", "g_2")
    assert events(chain, "execute") == ["g_0"] * 3
    await chain.close()


async def test_until_the_change_is_committed_only_the_old_instances_serve(serve):
    chain = await serve(Diary, groups(group(1)))
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


async def test_an_abandoned_change_leaves_everything_as_it_was(serve):
    chain = await serve(Diary, groups(group(2)))
    running = ask(chain)

    prepared = await prepare(chain, group(3))
    await prepared.abandon()
    await asyncio.gather(running, *(ask(chain) for _ in range(4)))

    assert ("close", "g_2") in chain.recorder.batches
    assert set(events(chain, "execute")) == {"g_0", "g_1"}
    await chain.close()


async def test_an_instance_that_cannot_open_leaves_everything_as_it_was(serve):
    class Three(Diary):
        def open(self):
            super().open()
            if self.name == "g_3":
                raise ValueError("no fourth")

    chain = await serve(Three, groups(group(2)))
    running = ask(chain, 5)

    with pytest.raises(ValueError, match="no fourth"):
        await prepare(chain, group(4))

    assert await y(running) == 5
    assert events(chain, "close") == ["g_2"]
    await asyncio.gather(*(ask(chain) for _ in range(4)))
    assert set(events(chain, "execute")) == {"g_0", "g_1"}
    await chain.close()


async def test_instances_that_are_wanted_by_another_name_stay(serve):
    chain = await serve(Diary, groups(group(2)))
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
async def test_an_instance_that_is_wanted_otherwise_is_replaced(serve, more):
    chain = await serve(Diary, groups(group(1)))
    chain.recorder.batches.clear()

    replies = [ask(chain) for _ in range(3)]
    await change(chain, group(1, more=more))
    await asyncio.gather(*replies)
    await closed(chain, "g_0")

    assert [event for event, _ in chain.recorder.batches].count("open") == 1
    await chain.close()


async def test_new_instances_are_warm_before_they_serve(serve):
    sample = (
        'model_warmup { name: "s" batch_size: 1 inputs { key: "x" value: { data_type: TYPE_FP32 '
        "dims: [ 1 ] zero_data: true } } }"
    )
    chain = await serve(Diary, sample + groups(group(1)))
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


async def test_an_instance_out_of_service_is_replaced(serve):
    class Once(Diary):
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


async def test_a_decoupled_model_answers_to_the_end_before_its_instance_closes(serve):
    class Slow(core.ModelInstance):
        """Takes a request and answers later, whenever the test says."""

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
    while not chain.recorder.closed:
        await asyncio.get_running_loop().run_in_executor(None, lambda: None)

    assert chain.recorder.closed == 1
    assert chain.in_flight == 1
    for batch, i, _ in chain.recorder.batches:
        batch.finish(i)
    for reply in replies:
        assert [each async for each in reply] == []
    await chain.close()


async def test_an_instance_that_works_ahead_closes_after_the_last_it_has_begun(serve):
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
    while not chain.recorder.closed:
        await asyncio.get_running_loop().run_in_executor(None, lambda: None)
    for batch, done, name in begun:
        if name == "g_0":
            batch.respond(0, {"y": batch["x"]})
            done(None)

    assert [await y(reply) for reply in replies] == [0, 1, 2, 3, 4, 5]
    await chain.close()


async def test_a_passive_instance_is_open_and_gets_nothing(serve):
    chain = await serve(Diary, groups(group(1), group(1, "spare", "passive: true")))
    assert events(chain, "open") == ["g_0", "spare_0"]

    await asyncio.gather(*(ask(chain) for _ in range(3)))
    assert set(events(chain, "execute")) == {"g_0"}
    await change(chain, group(1), group(1, "spare"))  # another one: as in Triton
    await asyncio.gather(*(ask(chain) for _ in range(2)))

    assert events(chain, "execute") == ["g_0", "spare_0"]
    await chain.close()


async def test_a_model_with_passive_instances_only_refuses(serve):
    chain = await serve(Diary, groups(group(2, more="passive: true")))

    with pytest.raises(CoreError, match="no instance of the model is left: all are passive") as e:
        await ask(chain)

    assert e.value.kind is Kind.UNAVAILABLE
    assert not chain.ready
    await chain.close()
    assert events(chain, "close") == ["g_0", "g_1"]


def limited(count, needs):
    return group(count, more=f'rate_limiter {{ resources [ {{ name: "R" count: {needs} }} ] }}')


async def test_resources_of_instances_that_leave_are_free_again(serve):
    limiter = RateLimiter({"R": {GLOBAL: 4}})
    chain = await serve(Diary, groups(limited(1, 4)), limiter=limiter)
    other = await serve(Diary, groups(limited(1, 4)), limiter=limiter)
    replies = [ask(chain, value) for value in range(4)] + [ask(other, value) for value in (4, 5)]
    await asyncio.sleep(0.005)

    await change(chain, limited(2, 1))

    assert [await y(reply) for reply in replies] == [0, 1, 2, 3, 4, 5]
    assert not any(limiter._used.values())
    await change(chain, limited(1, 1))
    assert await y(ask(other, 6)) == 6
    await chain.close()
    await other.close()


async def test_a_demand_that_can_never_be_met_leaves_everything_as_it_was(serve):
    chain = await serve(Diary, groups(limited(1, 2)), limiter=RateLimiter({"R": {GLOBAL: 2}}))

    with pytest.raises(CoreError, match="limited to 2"):
        await prepare(chain, limited(1, 3))

    assert await y(ask(chain, 3)) == 3
    await chain.close()


START, END = SEQUENCE_START, SEQUENCE_END
DIRECT = "sequence_batching { direct { } max_sequence_idle_microseconds: 1000000 }"
OLDEST = (
    "sequence_batching { oldest { max_candidate_sequences: 2 } "
    "max_sequence_idle_microseconds: 1000000 }"
)
STATE = (
    'state [ { input_name: "in" output_name: "out" data_type: TYPE_FP32 dims: [ 1 ] initial_state '
    '{ name: "zero" data_type: TYPE_FP32 dims: [ 1 ] zero_data: true } } ]'
)


class Count(Diary):
    """y is how many of its requests the sequence of each row has had here."""

    def open(self):
        super().open()
        self.seen = {}

    async def execute(self, batch):
        self.note("execute")
        await asyncio.sleep(0.010)
        found = []
        for request in batch.requests:
            key = request.correlation_id
            self.seen[key] = 1 if request.flags & START else self.seen.get(key, 0) + 1
            found.append([self.seen[key]])
        return {"y": np.array(found, np.float32)}


@pytest.mark.parametrize("strategy", [DIRECT, OLDEST])
async def test_sequences_stay_where_they_are_also_on_an_instance_that_leaves(serve, strategy):
    chain = await serve(Count, strategy + groups(group(2)), max_batch_size=2)
    for sequence in (1, 2, 3, 4):
        assert await y(ask(chain, sequence=sequence, flags=START)) == 1
    running = [ask(chain, sequence=sequence) for sequence in (1, 2, 3, 4)]
    await asyncio.sleep(0.005)

    await change(chain, group(1))
    newcomer = ask(chain, sequence=5, flags=START)  # there is no place for it yet

    assert [await y(reply) for reply in running] == [2, 2, 2, 2]
    assert [await y(ask(chain, sequence=i)) for i in (1, 2, 3, 4)] == [3, 3, 3, 3]
    assert chain.pending == 1
    chain.recorder.batches.clear()
    for sequence in (1, 2, 3, 4):
        assert await y(ask(chain, sequence=sequence, flags=END)) == 4
    assert await y(newcomer) == 1
    await closed(chain, "g_1")
    assert await y(ask(chain, sequence=5, flags=END)) == 2
    await chain.close()


@pytest.mark.parametrize("strategy", [DIRECT, OLDEST])
async def test_new_instances_give_places_to_sequences_that_wait(serve, strategy):
    chain = await serve(Count, strategy + groups(group(1)), max_batch_size=2)
    prepared = await prepare(chain, group(2))
    replies = [ask(chain, sequence=sequence, flags=START) for sequence in (1, 2, 3, 4)]
    await asyncio.sleep(0.1)
    assert chain.pending == 2

    prepared.commit()

    assert [await y(reply) for reply in replies] == [1, 1, 1, 1]
    assert [await y(ask(chain, sequence=i)) for i in (1, 2, 3, 4)] == [2, 2, 2, 2]
    await chain.close()


async def test_an_instance_that_leaves_does_not_wait_for_sequences_that_nobody_uses(serve):
    chain = await serve(Count, DIRECT + groups(group(2)), max_batch_size=1)
    for sequence in (1, 2):
        await ask(chain, sequence=sequence, flags=START)

    await change(chain, group(1))
    await asyncio.sleep(1.5)

    await closed(chain, "g_1")
    await chain.close()


async def test_implicit_state_stays_with_its_sequence(serve):
    class Sum(Diary):
        async def execute(self, batch):
            await asyncio.sleep(0.010)
            total = batch["in"] + batch["x"]
            return {"y": total, "out": total}

    config = OLDEST.replace("} max", "} " + STATE + " max") + groups(group(2))
    chain = await serve(Sum, config, max_batch_size=2)
    prepared = await prepare(chain, group(1), group(1, "new", "kind: KIND_MODEL"))
    for sequence in (1, 2, 3, 4):
        await ask(chain, 10 * sequence, sequence, START)

    prepared.commit()

    assert [await y(ask(chain, 1, i, END)) for i in (1, 2, 3, 4)] == [11, 21, 31, 41]
    await closed(chain, "g_1")
    await chain.close()


async def test_a_chain_closes_with_instances_that_still_leave(serve):
    chain = await serve(Count, DIRECT + groups(group(2)), max_batch_size=1)
    for sequence in (1, 2):
        await ask(chain, sequence=sequence, flags=START)
    await change(chain, group(1))

    await chain.drain()
    await chain.close()

    assert events(chain, "close") == ["g_0", "g_1"]
