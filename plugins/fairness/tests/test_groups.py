"""Models that share a device take turns: by the time of their executions, in proportion to weights."""

import asyncio

import pytest
from core_fairness.group import Group
from core_fairness.settings import Fairness
from core_fairness.settings import Group as GroupSettings

from .conftest import BATCHES, IO
from .test_requests import step_of
from .test_shares import light, p99

ALICE, BOB = 1, 2


class Device:
    """Models of one group, and how many of their executions overlap."""

    def __init__(self, serve, models, at_once=1, **settings):
        self.serve, self.settings = serve, settings
        self.group = Group(
            "gpu0", GroupSettings(models, at_once), asyncio.get_running_loop().time_ns
        )

    async def model(self, name, text=BATCHES, **more):
        return await self.serve(text, self.settings, self.group, name=name, **more)


async def flooded(models, seconds=20, clients=24, caller=ALICE):
    """Flood models; return how often each has executed, and how long in all."""
    before = [len(each.batches) for each in models]
    await asyncio.gather(*(each.flood(caller, clients, seconds) for each in models))
    return [len(each.batches) - count for each, count in zip(models, before, strict=True)]


def test_equal_models_execute_equally_often_and_one_at_a_time(virtual):
    async def test(serve):
        device = Device(serve, {"a": 1, "b": 1})
        models = [await device.model("a"), await device.model("b")]

        a, b = await flooded(models)

        assert a == pytest.approx(b, rel=0.03)
        assert a + b == pytest.approx(20 * 50, rel=0.05)  # 50 executions of 20 ms in a second
        assert all(len(batch) == 8 for batch in models[0].batches[5:-10])

    virtual(test)


def test_a_model_with_a_larger_weight_gets_more(virtual):
    async def test(serve):
        device = Device(serve, {"a": 3, "b": 1})
        a, b = await flooded([await device.model("a"), await device.model("b")])

        assert a / b == pytest.approx(3, rel=0.05)

    virtual(test)


def test_the_share_is_of_time_and_not_of_requests(virtual):
    async def test(serve):
        device = Device(serve, {"slow": 1, "quick": 1})
        slow = await device.model("slow", batch_s=0.1)
        quick = await device.model("quick", IO, batch_s=0.01)

        slow_count, quick_count = await flooded([slow, quick], 120)

        assert slow_count * 0.1 == pytest.approx(quick_count * 0.01, rel=0.15)

    virtual(test)


def test_a_model_that_is_alone_gets_everything(virtual):
    async def test(serve):
        device = Device(serve, {"a": 1, "b": 100})
        a, _ = await device.model("a"), await device.model("b")

        assert (await flooded([a]))[0] == pytest.approx(20 * 50, rel=0.05)

    virtual(test)


def test_as_many_executions_run_at_once_as_the_group_says(virtual):
    async def test(serve):
        device = Device(serve, {"a": 1, "b": 1, "c": 1}, at_once=2)
        models = [await device.model(name) for name in "abc"]

        assert sum(await flooded(models)) == pytest.approx(2 * 20 * 50, rel=0.1)

    virtual(test)


def test_a_light_model_beside_a_flooded_one_waits_for_one_execution(virtual):
    async def test(serve):
        device = Device(serve, {"a": 1, "b": 1})
        a, b = await device.model("a"), await device.model("b")
        alone = p99(await light(a))
        flood = asyncio.ensure_future(b.flood(BOB, 64, 1000))
        await asyncio.sleep(1)

        assert p99(await light(a)) <= 2.1 * alone
        flood.cancel()

    virtual(test)


def test_callers_take_turns_in_each_model_of_a_group(virtual):
    async def test(serve):
        device = Device(serve, {"a": 1, "b": 1}, weights={"alice": 3})
        a, b = await device.model("a"), await device.model("b")
        got = await asyncio.gather(
            a.flood(ALICE, 24, 20), a.flood(BOB, 24, 20), b.flood(BOB, 24, 20)
        )

        assert got[0] / got[1] == pytest.approx(3, rel=0.05)
        assert got[0] + got[1] == pytest.approx(got[2], rel=0.05)

    virtual(test)


def test_other_weights_hold_at_once(virtual):
    async def test(serve):
        device = Device(serve, {"a": 1, "b": 1})
        models = [await device.model("a"), await device.model("b")]
        await flooded(models, 10)

        device.group.set(GroupSettings({"a": 1, "b": 4}))
        a, b = await flooded(models)

        assert b / a == pytest.approx(4, rel=0.06)

    virtual(test)


def test_a_step_never_waits_for_another_step_of_its_own_request(virtual):
    async def test(serve):
        device = Device(serve, {"a": 1, "b": 1})
        a, b = await device.model("a", IO), await device.model("b", IO)
        client = a.ask(ALICE).request
        first = step_of(a, client, 1)
        while client not in device.group.inside:
            await asyncio.sleep(0.001)

        second = step_of(b, client, 2)

        assert b.queue.straight == 1
        await asyncio.gather(first, second)
        assert not device.group.inside and device.group.open == 0

    virtual(test)


def test_a_model_that_has_gone_leaves_the_others_their_turns(virtual):
    async def test(serve):
        device = Device(serve, {"a": 1, "b": 1})
        a, b = await device.model("a"), await device.model("b")
        await flooded([a, b], 5)

        device.group.remove(a.queue)
        a.queue.member = None

        assert (await flooded([b], 10))[0] == pytest.approx(500, rel=0.05)

    virtual(test)


def test_the_settings_name_the_group_of_a_model():
    found = Fairness.read({"groups": {"gpu0": {"models": {"a": 2, "b": 1}, "at_once": 3}}})

    assert found.group_of("b") == "gpu0" and found.group_of("c") is None
    assert found.groups["gpu0"].at_once == 3
