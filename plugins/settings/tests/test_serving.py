"""Live settings of a server in this process: calls, loads, history, audit."""

import asyncio
import logging

import pytest
from core_settings.state import KEPT

from core.control import OPERATIONS, called_by
from core.errors import CoreError, Kind

from .conftest import BATCHING, CONFIG, area, ask, delay, text_of_error, until

LIMITED = """
instance_group [ { name: "g" count: 1 kind: KIND_CPU rate_limiter { resources [ { name: "R" count: 1 } ] } } ]
"""


async def test_a_change_is_in_force_at_once_and_shown(models, serve):
    models.write()
    server = await serve()

    found = await area(server).set("m", delay(500_000))

    assert found["number"] == 1
    assert found["settings"] == delay(500_000)
    assert found["now"]["dynamic_batching"]["max_queue_delay_microseconds"] == 500_000
    assert found["file"]["dynamic_batching"]["max_queue_delay_microseconds"] == 100
    assert found == area(server).get("m")
    assert area(server).models() == {"m": 1}
    shown = server.models.config_json("m")["dynamic_batching"]
    assert shown["max_queue_delay_microseconds"] == 500_000


async def test_requests_that_wait_follow_a_change_and_none_is_lost(models, serve):
    models.write(config=CONFIG + "dynamic_batching { max_queue_delay_microseconds: 60000000 }")
    server = await serve()
    replies = [ask(server) for _ in range(3)]
    await asyncio.sleep(0.02)
    assert server.backend.executed == []

    await area(server).set("m", delay(0))

    await asyncio.gather(*replies)
    assert server.backend.executed == [3]
    (statistics,) = server.control.health.statistics_here("m")
    assert statistics["inference_stats"]["success"]["count"] == 3


async def test_a_running_batch_ends_as_it_began(models, serve):
    models.write()
    server = await serve()
    running = ask(server, value=-1)
    await until(lambda: server.backend.executed)

    await area(server).set(
        "m", {"dynamic_batching": {"default_queue_policy": {"max_queue_size": 1}}}
    )
    waiting = ask(server)
    with pytest.raises(CoreError, match="Exceeds maximum queue size"):
        ask(server)

    server.backend.released.set()
    await asyncio.gather(running, waiting)


async def test_null_goes_back_to_the_configuration_and_the_rest_stays(models, serve):
    models.write()
    server = await serve()
    await area(server).set("m", delay(7))
    await area(server).set("m", {"dynamic_batching": {"preferred_batch_size": [4]}})

    found = await area(server).set("m", delay(None))

    assert found["settings"] == {"dynamic_batching": {"preferred_batch_size": [4]}}
    assert found["now"]["dynamic_batching"]["max_queue_delay_microseconds"] == 100


async def test_a_call_that_changes_nothing_has_no_number(models, serve):
    models.write()
    server = await serve()
    await area(server).set("m", delay(7))

    assert (await area(server).set("m", delay(7)))["number"] == 1
    assert (await area(server).set("m", {}))["number"] == 1


async def test_history_says_when_who_from_and_to(models, serve, caplog):
    models.write()
    server = await serve()
    caplog.set_level(logging.INFO, "core")

    with called_by("caller 'deploy' at 10.0.0.7"):
        found = await area(server).set("m", delay(200))

    (entry,) = found["history"]
    assert entry.pop("time").endswith("+00:00")
    assert entry == {
        "number": 1,
        "caller": "caller 'deploy' at 10.0.0.7",
        "operation": "set",
        "changes": {"dynamic_batching.max_queue_delay_microseconds": {"from": 100, "to": 200}},
        "settings": delay(200),
    }
    assert (
        "audit: model_settings.set by caller 'deploy' at 10.0.0.7 done: model m, number 1: "
        "dynamic_batching.max_queue_delay_microseconds 100 → 200"
    ) in caplog.messages


async def test_rollback_to_any_number_that_is_kept_and_reset(models, serve, caplog):
    models.write()
    server = await serve()
    caplog.set_level(logging.INFO, "core")
    for us in (1, 2, 3):
        await area(server).set("m", delay(us))

    found = await area(server).rollback("m", 1)
    assert (found["number"], found["settings"]) == (4, delay(1))
    assert "number 4, rollback to 1: " in caplog.messages[-1]
    assert (await area(server).rollback("m", 0))["settings"] == {}
    assert (await area(server).rollback("m", 2))["settings"] == delay(2)

    found = await area(server).reset("m")
    assert (found["number"], found["settings"]) == (7, {})
    assert found["now"] == found["file"]
    assert [each["operation"] for each in found["history"]][-2:] == ["rollback to 2", "reset"]
    assert area(server).models() == {}


async def test_a_number_that_is_not_there_names_those_that_are(models, serve):
    models.write()
    server = await serve()

    found = await text_of_error(area(server).rollback("m", 3))
    assert found == "settings of model 'm' have no number 3; there are: 0"

    for us in range(1, KEPT + 3):
        await area(server).set("m", delay(us))
    with pytest.raises(CoreError) as caught:
        await area(server).rollback("m", 1)
    assert caught.value.kind is Kind.NOT_FOUND
    found = caught.value.message
    assert found == f"settings of model 'm' have no number 1; there are: 0, 3 to {KEPT + 2}"
    assert "-1, expected the number of a change" in await text_of_error(
        area(server).rollback("m", -1)
    )


@pytest.mark.parametrize(
    ("settings", "text"),
    [
        (delay("x"), 'dynamic_batching.max_queue_delay_microseconds is "x", expected a whole'),
        ({"dynamic_batching": {"preferred_batch_size": [16]}}, "[0] is 16, max_batch_size is 8"),
        ({"dynamic_batching": {"priority_levels": 2}}, "must be in range [1, 2]"),
        ({"sequence_batching": {"direct": {}}}, None),
        (
            {"sequence_batching": {"max_sequence_idle_microseconds": 5}},
            "has no sequence_batching, which cannot be added while it serves",
        ),
        (
            {"response_cache": {"enable": True}},
            "the server has no cache: start it with --cache-conf",
        ),
        ({"rate_limiter": {"m": {"priority": 2}}}, "start the server with --rate-limit=execution"),
    ],
)
async def test_what_is_wrong_is_refused_and_changes_nothing(models, serve, caplog, settings, text):
    models.write()
    server = await serve()
    caplog.set_level(logging.INFO, "core")

    if text is None:
        assert (await area(server).set("m", settings))["number"] == 0
        return
    assert text in await text_of_error(area(server).set("m", settings))

    found = area(server).get("m")
    assert (found["number"], found["now"]) == (0, found["file"])
    assert caplog.messages[-1].startswith("audit: model_settings.set by ")
    assert caplog.messages[-1].endswith(" failed (Invalid argument): model m")


def test_changes_need_the_role_of_an_operator():
    rows = {
        name: OPERATIONS[f"model_settings.{name}"] for name in ("set", "rollback", "reset", "get")
    }

    assert {each.category for each in rows.values()} == {"model-repository"}
    assert [name for name, each in rows.items() if each.changes] == ["set", "rollback", "reset"]
    assert OPERATIONS["model_settings.put"].internal


async def test_an_unknown_model_is_refused(models, serve):
    models.write()
    server = await serve()

    assert "unknown model" in await text_of_error(area(server).set("n", delay(1)))


async def test_all_versions_of_a_model_change_together(models, serve):
    models.write(config=CONFIG + BATCHING + "version_policy { all {} }", versions=(1, 2))
    server = await serve()

    await area(server).set("m", delay(7))

    for version in (1, 2):
        config = server.models.config("m", version)
        assert config.dynamic_batching.max_queue_delay_microseconds == 7


async def test_settings_outlive_a_reload_with_statistics_of_the_new_version(models, serve):
    models.write()
    server = await serve()
    await area(server).set("m", delay(7))
    before = server.models.endpoint("m")

    models.write(config=CONFIG + BATCHING.replace("100", "50") + 'parameters { key: "a" }')
    await server.control.repository.load("m", {})

    found = area(server).get("m")
    assert server.models.endpoint("m") is not before
    assert found["now"]["dynamic_batching"]["max_queue_delay_microseconds"] == 7
    assert found["file"]["dynamic_batching"]["max_queue_delay_microseconds"] == 50
    assert (await area(server).reset("m"))["now"] == found["file"]


async def test_settings_outlive_unload_and_load(models, serve):
    models.write()
    server = await serve()
    await area(server).set("m", delay(7))

    await server.control.repository.unload("m")
    assert "no available versions" in await text_of_error(area(server).set("m", delay(8)))
    await server.control.repository.load("m", {})

    assert area(server).get("m")["settings"] == delay(7)
    assert server.models.config("m").dynamic_batching.max_queue_delay_microseconds == 7


async def test_other_instances_come_without_a_reload_although_settings_are_live(models, serve):
    models.write()
    server = await serve()
    await area(server).set("m", delay(7))
    await ask(server)
    before = server.models.endpoint("m")

    models.write(config=CONFIG + BATCHING + "instance_group [ { count: 3 kind: KIND_CPU } ]")
    await server.control.repository.load("m", {})

    assert server.models.endpoint("m") is before
    (version,) = server.manager.versions()
    assert version.chain.instances == 3
    assert version.config.dynamic_batching.max_queue_delay_microseconds == 7
    assert version.statistics.success.count == 1


async def test_settings_that_fit_no_more_are_left_out_and_said(models, serve, caplog):
    models.write()
    server = await serve()
    await area(server).set("m", {"dynamic_batching": {"preferred_batch_size": [8]}})

    models.write(config=CONFIG.replace("8", "4") + BATCHING)
    await server.control.repository.load("m", {})

    found = area(server).get("m")
    assert found["now"] == found["file"]
    assert "preferred_batch_size[0] is 8, max_batch_size is 4" in found["problem"]
    assert "live settings of model 'm' are left out: " in caplog.text
    assert (await ask(server)).outputs
    assert "problem" not in await area(server).set(
        "m", {"dynamic_batching": {"preferred_batch_size": [4]}}
    )


async def test_the_cache_on_and_off(models, serve):
    models.write()
    server = await serve(cache_config={"local": (("size", "1048576"),)})

    await area(server).set("m", {"response_cache": {"enable": True}})
    for _ in range(3):
        await ask(server)
    assert server.backend.executed == [1]
    await area(server).set("m", {"response_cache": {"enable": False}})
    await ask(server)

    assert server.backend.executed == [1, 1]


async def test_demands_for_the_rate_limiter(models, serve):
    models.write(config=CONFIG + LIMITED)
    server = await serve(rate_limit="execution_count", rate_limit_resource={"R": {-1: 2}})

    found = await area(server).set("m", {"rate_limiter": {"g": {"priority": 3}}})
    assert found["now"]["rate_limiter"]["g"]["priority"] == 3
    assert found["now"]["rate_limiter"]["g"]["resources"][0]["count"] == 1

    resources = {"resources": [{"name": "R", "count": 3}]}
    work = area(server).set("m", {"rate_limiter": {"g": resources}})
    assert 'Resource count for "r" is limited to 2' in await text_of_error(work)
    assert area(server).get("m")["number"] == 1
    work = area(server).set("m", {"rate_limiter": {"h": resources}})
    assert "there is no such instance group; there are: g" in await text_of_error(work)
    assert (await ask(server)).outputs


async def test_a_thousand_changes_under_load_lose_nothing(models, serve):
    models.write()
    server = await serve()
    choices = [
        delay(0),
        delay(300),
        {"dynamic_batching": {"preferred_batch_size": [2, 8]}},
        {"dynamic_batching": {"preferred_batch_size": []}},
        {"dynamic_batching": {"priority_levels": 3, "default_priority_level": 2}},
        {"dynamic_batching": {"priority_levels": None, "default_priority_level": None}},
        {"dynamic_batching": {"preserve_ordering": True, "priority_levels": None,
                              "default_priority_level": None}},
        {"dynamic_batching": {"preserve_ordering": None}},
    ]  # fmt: skip
    sent = 0
    ends = False

    async def client(number):
        nonlocal sent
        while not ends:
            sent += 1
            found = await ask(server, value=sent, priority=number % 4)
            assert found.outputs[0].array.shape == (1, 1)

    clients = [asyncio.ensure_future(client(number)) for number in range(16)]
    for number in range(1000):
        if number % 8 != 4:  # levels and an order of responses exclude each other
            await area(server).set("m", choices[number % 8])
        else:
            await area(server).set("m", {**choices[4], "response_cache": None})
        await asyncio.sleep(0)
    ends = True
    await asyncio.gather(*clients)

    (version,) = server.manager.versions()
    assert version.statistics.success.count == sent > 100
    assert version.in_flight == version.chain.pending == 0
    assert version.statistics.fail.count == 0
