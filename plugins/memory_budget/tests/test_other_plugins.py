"""Live settings and traffic of a model that is unloaded for others, and loaded again by a request."""

import numpy as np
import pytest

from core.errors import CoreError, Kind
from core.request import InferenceRequest
from core.tensor import Tensor

from .conftest import CONFIG, answers, entries, loaded

BATCHED = CONFIG + "max_batch_size: 4\ndynamic_batching { max_queue_delay_microseconds: 100 }\n"
VERSIONS = CONFIG + "version_policy { all {} }\n"


def batching(**fields):
    return {"dynamic_batching": fields}


async def pushed_out(server, ask):
    """Ask other models until model a is unloaded."""
    await answers(server, ask, "b", "c", "d")
    assert "a" not in loaded(server)


@pytest.fixture
def others(models):
    """Three models, which fill the budget. Model a goes first, however long its load has taken."""
    for name in "bcd":
        models.write(name, priority="1")


async def batched(server):
    x = Tensor.of("x", np.full((1, 1), 3, np.float32))
    response = await server.models.infer(InferenceRequest("a", {"x": x}))
    assert response.outputs[0].array.tolist() == [[6.0]]


async def test_live_settings_outlive_unloads_and_change_while_the_model_is_out(
    serve, models, others, ask
):
    pytest.importorskip("core_settings")
    models.write("a")
    models.config("a", BATCHED + entries({"estimate": "1000"}))
    server = await serve()
    settings = server.control.areas["model_settings"]
    await batched(server)
    await settings.set("a", batching(max_queue_delay_microseconds=500))

    await pushed_out(server, ask)
    assert settings.get("a")["now"]["dynamic_batching"]["max_queue_delay_microseconds"] == 500
    await settings.set("a", batching(preferred_batch_size=[2]))
    await batched(server)

    (version,) = [each for each in server.manager.versions() if each.name == "a"]
    now = version.config.dynamic_batching
    assert (now.max_queue_delay_microseconds, list(now.preferred_batch_size)) == (500, [2])
    found = settings.get("a")
    assert [each["number"] for each in found["history"]] == [1, 2]
    assert (await settings.rollback("a", 0))["now"] == found["file"]


@pytest.fixture
async def shared(serve, models, others, ask):
    """A server whose model a has two versions that are loaded by a request."""
    pytest.importorskip("core_traffic")
    for version in (1, 2):
        models.write("a", 500, version)
    models.config("a", VERSIONS + entries({"estimate": "1000"}))
    server = await serve()
    await answers(server, ask, "a")
    return server


async def versions_of(server, ask, count=10):
    return {(await ask(server, "a")).model_version for _ in range(count)}


async def test_traffic_outlives_unloads(shared, ask):
    traffic = shared.control.areas["traffic"]
    assert await versions_of(shared, ask) == {2}
    await traffic.set("a", {"weights": {"1": 1}})
    assert await versions_of(shared, ask) == {1}

    await pushed_out(shared, ask)
    found = await traffic.get("a")
    assert (found["source"], found["traffic"]) == ("control", {"weights": {"1": 1}})

    assert await versions_of(shared, ask) == {1}
    found = await traffic.get("a")
    assert [each["success"] for each in found["versions"] if each["version"] == 1] == [20]


async def test_traffic_of_a_model_that_is_out_can_be_reset_but_not_set(shared, ask):
    traffic = shared.control.areas["traffic"]
    await traffic.set("a", {"weights": {"1": 1}})
    await pushed_out(shared, ask)

    with pytest.raises(CoreError) as caught:
        await traffic.set("a", {"weights": {"2": 1}})
    assert caught.value.kind is Kind.NOT_FOUND
    assert caught.value.message == "model 'a' has no version that is ready; load it first"
    await traffic.reset("a")

    assert await versions_of(shared, ask) == {2}
