"""A version that breaks its objective loses its share by itself."""

import asyncio
import time

import pytest
from core_traffic import rollback

from .conftest import CONFIG, area, ask, parameter, shares, text_of_error, until

ECHO = CONFIG.replace('"versions"', '"echo"')
EVENT = {"time": 1.0, "version": 2, "reason": "it is bad", "weights": {"1": 1}}


def settings(weights, **objective):
    return {"weights": weights, "rollback": {"min_requests": 5, **objective}}


@pytest.fixture(autouse=True)
def often(monkeypatch):
    monkeypatch.setattr(rollback, "PERIOD_S", 0.01)


def model(server):
    return area(server)._traffic.models["m"]


async def fail(server, count=10):
    """Send requests to each version that fail."""
    for _ in range(count):
        await text_of_error(ask(server, value=-1.0))


async def test_errors_take_a_version_out(models, serve, caplog):
    models.write(versions=(1, 4), config=ECHO, more=parameter('{"weights": {"1": 1}}'))
    server = await serve()
    caplog.set_level("INFO", "core")
    await area(server).set("m", settings({"1": 50, "4": 50}, error_rate=0.05))
    begun = time.monotonic()

    while model(server).source != "rollback":
        await asyncio.gather(ask(server), return_exceptions=True)
        assert time.monotonic() < begun + 5

    assert [(await ask(server)).model_version for _ in range(20)] == [1] * 20
    report = await area(server).get("m")
    (event,) = report["rollbacks"]
    assert (event["version"], event["weights"]) == (4, {"1": 50, "4": 0})
    assert event["time"] == pytest.approx(time.time(), abs=60)
    assert "requests failed in 10 s, more than 5 %" in event["reason"]
    assert (report["source"], report["traffic"]["rollback"]["error_rate"]) == ("rollback", 0.05)
    text = caplog.text
    assert "audit: traffic.roll_back by the objective of its traffic done: traffic m" in text
    assert "traffic of model 'm': rolled back version 4:" in text
    families = {each.name: each for each in await server.control.health.metrics()}
    samples = families["core_traffic_rollbacks"].samples
    assert {s.labels["version"]: s.value for s in samples} == {"1": 0, "4": 1}


async def test_slow_answers_take_a_version_out(models, serve):
    models.write(versions=(1, 5), config=ECHO, more=parameter('{"weights": {"1": 1}}'))
    server = await serve()
    await area(server).set("m", settings({"1": 0, "5": 1}, p99_ms=200, to=1))
    replies = [ask(server) for _ in range(5)]
    await asyncio.sleep(0.25)
    server.released.set()
    await asyncio.gather(*replies)

    await until(lambda: model(server).source == "rollback")

    assert (await ask(server)).model_version == 1


async def test_clients_that_give_up_count_too(models, serve):
    models.write(versions=(1, 5), config=ECHO, more=parameter('{"weights": {"1": 1}}'))
    server = await serve()
    await area(server).set("m", settings({"1": 0, "5": 1}, p99_ms=20, to=1))
    replies = [ask(server) for _ in range(8)]
    await asyncio.sleep(0.05)
    for reply in replies:
        reply.cancel()

    await until(lambda: model(server).source == "rollback")

    assert (await ask(server)).model_version == 1


async def test_a_good_version_stays(models, serve):
    models.write()
    server = await serve()
    await area(server).set("m", settings({"1": 50, "2": 50}, error_rate=0.05, p99_ms=10_000))

    await shares(server, 50)
    await asyncio.sleep(0.05)

    assert (await area(server).get("m"))["rollbacks"] == []


async def test_few_requests_decide_nothing(models, serve):
    models.write()
    server = await serve()
    await area(server).set("m", settings({"1": 0, "2": 1}, error_rate=0, min_requests=50, to=1))

    await fail(server, 49)
    await asyncio.sleep(0.05)
    assert model(server).source == "control"
    await fail(server, 1)

    await until(lambda: model(server).source == "rollback")


async def test_the_last_version_stays_and_the_log_says_so_once(models, serve, caplog):
    models.write()
    server = await serve()
    await area(server).set("m", settings({"2": 1}, error_rate=0))

    await fail(server)
    await until(lambda: model(server).helpless == 2)
    await fail(server)
    await asyncio.sleep(0.05)

    assert await shares(server, 5) == {2: 5}
    assert caplog.text.count("version 2 is bad, but no other could answer: ") == 1


async def test_a_change_or_another_load_begins_the_window_anew(models, serve):
    models.write()
    server = await serve()
    objective = {"error_rate": 0, "min_requests": 8, "to": 1}
    for change in ("set", "load"):
        await area(server).set("m", settings({"1": 0, "2": 1}, **objective))
        await fail(server, 6)
        if change == "set":
            await area(server).set("m", settings({"1": 0, "2": 2}, **objective))
        else:
            # A new version directory alone leaves version 2 as it is; another configuration loads it again.
            models.write(versions=(), more='parameters { key: "a" value { string_value: "b" } }')
            await server.control.repository.load("m", {})
        await fail(server, 6)
        await asyncio.sleep(0.05)
        assert model(server).source == "control", change


async def test_an_operator_who_was_faster_is_not_overruled(models, serve):
    models.write()
    server = await serve()
    before = await area(server).set("m", settings({"1": 1, "2": 1}, error_rate=0))
    await area(server).set("m", {"weights": {"2": 1}})

    assert await area(server).roll_back("m", before, {"weights": {"1": 1}}, EVENT) is False
    assert (await area(server).get("m"))["rollbacks"] == []
    assert await shares(server, 5) == {2: 5}


async def test_a_process_that_starts_later_takes_what_the_others_did(models, serve):
    models.write(more=parameter('{"weights": {"2": 1}}'))
    server = await serve()

    assert await area(server).roll_back("m", {"weights": {"9": 1}}, {"weights": {"1": 1}}, EVENT)
    assert await shares(server, 5) == {1: 5}
    assert (await area(server).get("m"))["rollbacks"] == [EVENT]


async def test_without_an_objective_no_timer_runs(models, serve):
    models.write()
    server = await serve()
    watch = __import__("core_traffic")._watches[id(server.models)]
    await area(server).set("m", {"weights": {"1": 1}})
    assert watch._timer is None

    await area(server).set("m", settings({"1": 1, "2": 1}, error_rate=0.5))
    assert watch._timer is not None
    await area(server).set("m", {"weights": {"1": 1}})
    await until(lambda: watch._timer is None)


async def test_the_objective_of_a_configuration_holds_too(models, serve):
    text = '{"weights":{"1":0,"2":1},"rollback":{"error_rate":0,"min_requests":5,"to":1}}'
    models.write(more=parameter(text))
    server = await serve()

    await fail(server)
    await until(lambda: model(server).source == "rollback")

    assert await shares(server, 5) == {1: 5}
