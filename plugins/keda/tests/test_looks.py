"""Who asks often, or in many streams, does not make the server collect its metrics more often."""

import asyncio
from types import SimpleNamespace

import pytest
from core_keda import messages
from core_keda.looks import KEPT_S, Looks
from core_keda.scaler import MOST_STREAMS, Scaler

from core.errors import CoreError, Kind, unavailable
from core.telemetry.families import Sample
from core.telemetry.metrics.catalog import family

PENDING = "nv_inference_pending_request_count"
REFERENCE = messages.ScaledObjectRef(scalerMetadata={"signal": "pending", "target": "1"})


class Metrics:
    """Counts how often it is collected. Its error, if it has one, is raised."""

    def __init__(self):
        self.collected = 0
        self.error = None
        self.now_s = 0.0

    async def __call__(self):
        self.collected += 1
        await asyncio.sleep(0)  # as long as another caller needs to come
        if self.error is not None:
            raise self.error
        return [family(PENDING, [Sample({"model": "m"}, self.collected)])]

    def looks(self):
        return Looks(self, lambda: self.now_s)

    def scaler(self):
        return Scaler(
            SimpleNamespace(control=SimpleNamespace(health=SimpleNamespace(metrics=self)))
        )


@pytest.fixture
def metrics():
    return Metrics()


async def values(looks, count):
    found = await asyncio.gather(*(looks.families() for _ in range(count)))
    return {each[PENDING].samples[0].value for each in found}


def test_callers_at_the_same_time_share_one_look(metrics):
    looks = metrics.looks()

    assert asyncio.run(values(looks, 1000)) == {1}
    assert metrics.collected == 1


def test_a_look_is_repeated_only_for_a_while(metrics):
    async def run():
        looks = metrics.looks()
        first = await values(looks, 1)
        metrics.now_s += KEPT_S / 2
        again = await values(looks, 1)
        metrics.now_s += KEPT_S
        return first, again, await values(looks, 1)

    assert asyncio.run(run()) == ({1}, {1}, {2})


def test_a_caller_that_leaves_does_not_end_the_look_of_others(metrics):
    async def run():
        looks = metrics.looks()
        leaves = asyncio.ensure_future(looks.families())
        stays = asyncio.ensure_future(values(looks, 1))
        await asyncio.sleep(0)
        leaves.cancel()
        return await stays

    assert asyncio.run(run()) == {1}
    assert metrics.collected == 1


def test_a_look_that_fails_is_not_repeated_at_once(metrics):
    async def run():
        looks = metrics.looks()
        metrics.error = unavailable("a worker is silent")
        for _ in range(3):
            with pytest.raises(CoreError, match="a worker is silent"):
                await looks.families()
        metrics.error = None
        metrics.now_s += KEPT_S
        return await values(looks, 1)

    assert asyncio.run(run()) == {2}


async def asked():
    yield REFERENCE.SerializeToString()


async def silent():
    await asyncio.Event().wait()
    yield b""


def test_of_too_many_streams_the_oldest_ends_and_silent_ones_do_not_count(metrics, monkeypatch):
    monkeypatch.setattr("frontends.grpc.newest_streams.LEAST_S", 0.0)

    async def run():
        scaler = metrics.scaler()
        quiet = [scaler.stream_is_active(silent(), None) for _ in range(MOST_STREAMS + 1)]
        waiting = [asyncio.ensure_future(anext(each)) for each in quiet]
        streams = [scaler.stream_is_active(asked(), None) for _ in range(MOST_STREAMS)]
        sent = {await anext(each) for each in streams}
        oldest = asyncio.ensure_future(anext(streams.pop(0)))
        second = asyncio.ensure_future(anext(streams[0]))
        await asyncio.sleep(0.01)
        began_well = not oldest.done()
        streams.append(scaler.stream_is_active(asked(), None))
        sent.add(await anext(streams[-1]))
        with pytest.raises(CoreError, match="1024 streams of StreamIsActive may be open") as error:
            await oldest
        second_lasts = not second.done()
        for each in [*waiting, second]:
            each.cancel()
        await asyncio.wait([*waiting, second])
        for each in streams:
            await each.aclose()
        return sent, error.value.kind, began_well, second_lasts

    active = messages.IsActiveResponse(result=True).SerializeToString()
    assert asyncio.run(run()) == ({active}, Kind.EXHAUSTED, True, True)
    assert metrics.collected < 40  # one each quarter of a second
