"""Copies of requests: what is compared, what bounds them, and that a caller never notices."""

import asyncio
import time

import numpy as np
import pytest

from core.errors import CoreError
from core.request import InferenceRequest, RequestedOutput
from core.tensor import Tensor

from .conftest import CONFIG, area, ask, parameter, text_of_error, until, version_of

ECHO = CONFIG.replace('"versions"', '"echo"').replace("dims: [ 1 ]", "dims: [ -1 ]")
STREAMS = CONFIG.replace('"versions"', '"streams"') + (
    "model_transaction_policy { decoupled: true }\n"
)
SEQUENCES = CONFIG + "max_batch_size: 1\nsequence_batching { direct {} }\n"


def shadowing(version, **more):
    """Settings that copy every request; a busy machine drops none, unless `in_flight` is given."""
    return {"weights": {"1": 1}, "shadow": {"version": version, "in_flight": 400, **more}}


async def state(server):
    """The counters of the only version that gets copies."""
    (found,) = (await area(server).get("m"))["shadows"]
    return found


async def results(server, total):
    """Wait until so many copies are counted; return the counters that are not 0."""
    names = ("equal", "differing", "error", "dropped", "skipped")
    (counts,) = server_shadows(server)
    await until(lambda: sum(counts.results.values()) >= total and not counts.in_flight)
    return {name: counts.results[name] for name in names if counts.results[name]}


def server_shadows(server):
    return area(server)._traffic.models["m"].shadows.values()


@pytest.fixture
async def echo(models, serve):
    """Versions 1 and 2 return x; 3 with 1e-3 more in the last element; 4 fails; 5 waits."""
    models.write(versions=(1, 2, 3, 4, 5), config=ECHO, more=parameter('{"weights": {"1": 1}}'))
    return await serve()


async def answer(server, shape=(4,), **fields):
    response = await ask(server, shape=shape, **fields)
    assert response.model_version == 1 and response.outputs[0].array.tolist() == [1.0] * shape[0]


async def test_an_equal_version_is_equal(echo):
    await area(echo).set("m", shadowing(2))

    for _ in range(20):
        await answer(echo)

    assert await results(echo, 20) == {"equal": 20}
    assert (await state(echo))["differences"] == []
    (arm,) = (await area(echo).get("m"))["versions"]  # copies are not in the traffic
    assert (arm["version"], arm["success"]) == (1, 20)


@pytest.mark.parametrize("size", [4, 100_000])
async def test_a_planted_difference_of_a_thousandth_is_found(echo, size):
    await area(echo).set("m", shadowing(3))

    await answer(echo, (size,), id="r-1")

    assert await results(echo, 1) == {"differing": 1}
    found = await state(echo)
    (difference,) = found["differences"]
    assert difference.pop("time") == pytest.approx(time.time(), abs=60)
    assert difference.pop("difference") == found["largest_difference"]
    assert found["largest_difference"] == pytest.approx(1e-3, rel=1e-3)
    assert difference == {
        "id": "r-1", "what": "value", "output": "y", "index": [size - 1], "caller": 1.0,
        "shadow": pytest.approx(1.001), "differing": 1, "elements": size,
    }  # fmt: skip


async def test_tolerances_are_those_of_the_settings(echo):
    await area(echo).set("m", shadowing(3, atol=0.01))
    await answer(echo)
    assert await results(echo, 1) == {"equal": 1}

    await area(echo).set("m", shadowing(3, outputs={"y": {"atol": 1e-4, "rtol": 0}}))
    await answer(echo)
    assert await results(echo, 2) == {"equal": 1, "differing": 1}


async def test_a_share_of_the_requests_is_copied(echo):
    await area(echo).set("m", shadowing(2, share=0.25, in_flight=400))

    for _ in range(400):
        await answer(echo)

    copied = (await results(echo, 60))["equal"]
    assert 65 <= copied <= 135  # four standard deviations


async def test_a_version_that_fails_is_an_error_that_no_caller_sees(echo):
    await area(echo).set("m", shadowing(4))

    await answer(echo)

    assert await results(echo, 1) == {"error": 1}
    assert "it cannot" in (await state(echo))["differences"][0]["shadow"]


async def test_callers_do_not_wait_and_copies_are_bounded(echo):
    await area(echo).set("m", shadowing(5, in_flight=3))

    for _ in range(10):
        await answer(echo)  # version 5 answers nothing yet

    assert ((await state(echo))["in_flight"], (await state(echo))["dropped"]) == (3, 7)
    echo.released.set()
    assert await results(echo, 10) == {"equal": 3, "dropped": 7}


async def test_a_copy_that_takes_too_long_is_cancelled(echo):
    await area(echo).set("m", shadowing(5, timeout_ms=50))
    await answer(echo)
    await answer(echo)

    await until(lambda: sum(next(iter(server_shadows(echo))).results.values()) == 2)

    found = await state(echo)
    assert found["error"] == 2 and found["differences"][0]["shadow"] == "no answer in 50 ms"
    assert found["in_flight"] > 0  # the model still runs, and keeps its place
    echo.released.set()
    assert await results(echo, 2) == {"error": 2}


async def test_a_change_of_the_settings_cancels_copies(echo):
    await area(echo).set("m", shadowing(5))
    await answer(echo)
    await answer(echo)
    await asyncio.sleep(0.02)

    await area(echo).set("m", {"weights": {"1": 1}})

    assert (await state(echo))["skipped"] == 2
    echo.released.set()
    assert await results(echo, 2) == {"skipped": 2}


async def test_an_unload_does_not_wait_for_queued_copies(echo, models):
    await area(echo).set("m", shadowing(5, in_flight=100))
    for _ in range(20):
        await answer(echo)

    await echo.control.repository.unload("m")

    assert next(iter(server_shadows(echo))).results["skipped"] == 20
    echo.released.set()
    assert await results(echo, 20) == {"skipped": 20}


async def test_a_caller_that_goes_away_has_no_copy(echo):
    await area(echo).set("m", {"weights": {"5": 1}, "shadow": {"version": 2}})
    replies = [ask(echo, shape=(4,)) for _ in range(2)]
    await asyncio.sleep(0.02)
    for reply in replies:
        reply.cancel()
    echo.released.set()
    await asyncio.gather(*replies, return_exceptions=True)

    assert await results(echo, 2) == {"skipped": 2}


async def test_requests_in_memory_of_the_client_are_not_copied(echo):
    await area(echo).set("m", shadowing(2))

    await answer(echo, shared=True)

    assert await results(echo, 1) == {"skipped": 1}


async def test_a_version_gets_no_copies_of_its_own_requests(echo):
    await area(echo).set("m", shadowing(1))
    await answer(echo)

    assert await results(echo, 0) == {}


async def test_an_error_of_the_callers_version_is_compared(echo):
    await area(echo).set("m", {"weights": {"4": 1}, "shadow": {"version": 2}})
    assert "it cannot" in await text_of_error(ask(echo, shape=(4,)))

    assert (await results(echo, 1)) == {"differing": 1}
    (difference,) = (await state(echo))["differences"]
    assert (difference["what"], difference["shadow"]) == ("error", "it has answered")


async def test_inputs_and_requested_outputs_are_those_of_the_caller(models, serve):
    models.write("m", versions=(1, 2), more=parameter('{"weights": {"1": 1}}'))
    server = await serve()
    await area(server).set("m", shadowing(2))
    x = Tensor.of("x", np.ones(1, np.float32))
    request = InferenceRequest("m", {"x": x}, outputs=(RequestedOutput("y", class_count=1),))

    await server.models.infer(request)

    assert await results(server, 1) == {"differing": 1}
    (difference,) = (await state(server))["differences"]
    assert (difference["caller"], difference["shadow"]) == ("1.000000:0", "2.000000:0")


async def test_a_reshaped_input_is_copied_as_the_client_sent_it(models, serve):
    shaped = (
        ECHO
        + 'input [ { name: "x" data_type: TYPE_FP32 dims: [ 4 ] reshape { shape: [ 2, 2 ] } } ]'
    )
    shaped = shaped.replace("dims: [ -1 ]", "dims: [ 2, 2 ]")
    models.write(versions=(1, 2), config=shaped, inputs="", more=parameter('{"weights": {"1": 1}}'))
    server = await serve()
    await area(server).set("m", shadowing(2))

    await ask(server, shape=(4,))

    assert await results(server, 1) == {"equal": 1}


async def test_streams_are_compared_response_by_response(models, serve):
    models.write(config=STREAMS, more=parameter('{"weights": {"1": 1}}'))
    server = await serve()
    await area(server).set("m", shadowing(2))

    found = [each.model_version async for each in ask(server, value=3.0)]

    assert found == [1, 1, 1]
    assert await results(server, 1) == {"differing": 1}
    (difference,) = (await state(server))["differences"]
    assert (difference["response"], difference["caller"], difference["shadow"]) == (0, 1.0, 2.0)


async def test_the_last_differences_are_kept(echo):
    await area(echo).set("m", shadowing(3))

    for number in range(25):
        await answer(echo, id=f"r-{number}")
        await results(echo, number + 1)

    kept = [each["id"] for each in (await state(echo))["differences"]]
    assert kept == [f"r-{number}" for number in range(5, 25)]


async def test_metrics_count_copies(echo):
    await area(echo).set("m", shadowing(3))
    await answer(echo)
    await results(echo, 1)

    families = {each.name: each for each in await echo.control.health.metrics()}
    samples = families["core_traffic_shadow_requests"].samples

    assert {s.labels["version"] for s in samples} == {"3"}
    assert {s.labels["result"]: s.value for s in samples}["differing"] == 1


async def test_models_with_sequences_have_no_copies(models, serve):
    text = "the model has sequences (sequence_batching), whose state cannot be copied"
    models.write(config=SEQUENCES)
    models.write(
        "n", config=SEQUENCES, more=parameter('{"weights":{"1":1},"shadow":{"version":2}}')
    )
    server = await serve()

    assert text in await text_of_error(area(server).set("m", shadowing(2)))
    index = await server.control.repository.index()
    assert all(text in each["reason"] for each in index if each["name"] == "n")


async def test_a_version_that_is_not_ready_is_refused_or_waited_for(models, serve):
    models.write(more=parameter('{"weights": {"1": 1}, "shadow": {"version": 7}}'))
    server = await serve()

    assert await version_of(server) == 1
    found = await state(server)
    assert (found["ready"], found["reason"]) == (False, "it is not ready")
    with pytest.raises(CoreError, match="version 8 is not ready; ready: 1, 2"):
        await area(server).set("m", shadowing(8))
