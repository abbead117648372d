"""What clients ask of one worker, or change through it, holds for all of them."""

import asyncio
import os
import re

import pytest

from core.errors import CoreError, Kind

CONFIG = """
backend: "test"
input [ { name: "x" data_type: TYPE_FP32 dims: [ -1 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ -1 ] } ]
"""


def states(index):
    return {entry["name"]: entry.get("state") for entry in index}


async def test_a_load_through_one_worker_is_in_all(start, folder):
    folder.model("m", config=CONFIG)
    fleet = await start()

    await fleet.control(2).repository.load("m", {})

    for worker in fleet.workers.values():
        assert worker.server.models.is_ready("m")
    assert states(await fleet.control(1).repository.index()) == {"m": "READY"}
    assert await fleet.control(1).health.model_ready("m")


async def test_an_unload_through_one_worker_is_in_all(start, folder):
    folder.model("m", config=CONFIG)
    fleet = await start(load_model=["m"])

    await fleet.control(1).repository.unload("m")

    for worker in fleet.workers.values():
        with pytest.raises(CoreError):
            worker.server.models.is_ready("m")


async def test_what_one_worker_cannot_load_none_serves(start, folder):
    folder.model("m", config=CONFIG)
    fleet = await start()
    fleet.workers[2].backend.refused.add("m")

    with pytest.raises(CoreError) as caught:
        await fleet.control(1).repository.load("m", {})

    assert "worker 2" in caught.value.message
    assert "no memory here" in caught.value.message
    for worker in fleet.workers.values():
        with pytest.raises(CoreError):
            worker.server.models.is_ready("m")


async def test_a_reload_that_one_worker_cannot_leaves_all_with_the_old_version(start, folder):
    folder.model("m", config=CONFIG)
    fleet = await start(load_model=["m"])
    before = [next(iter(worker.server.models.versions())) for worker in fleet.workers.values()]
    (folder.path / "m" / "1" / "model.txt").write_text("new")
    os.utime(folder.path / "m" / "1" / "model.txt", (1, 1))
    fleet.workers[1].backend.refused.add("m")

    with pytest.raises(CoreError):
        await fleet.control(1).repository.load("m", {})

    # The other one has loaded the new version, and let it go again.
    assert fleet.workers[2].backend.loads == ["m", "m"]
    assert [next(iter(each.server.models.versions())) for each in fleet.workers.values()] == before
    assert await fleet.control(2).health.model_ready("m")


async def test_what_no_worker_can_load_fails_with_the_text_of_one_server(start, folder):
    folder.model("m", config=CONFIG)
    fleet = await start()
    for worker in fleet.workers.values():
        worker.backend.refused.add("m")

    with pytest.raises(CoreError) as caught:
        await fleet.control(1).repository.load("m", {})

    assert caught.value.message.startswith(
        "load failed for model 'm': version 1 is at UNAVAILABLE state: "
    )
    assert re.search(r"worker \d", caught.value.message) is None


async def test_at_the_start_too_what_one_worker_cannot_load_none_serves(new_fleet, folder):
    folder.model("good", config=CONFIG)
    folder.model("m", config=CONFIG)
    fleet = new_fleet(model_repository=[str(folder.path)])
    operation = fleet.exchange.begin([1, 2])
    for number in (1, 2):
        worker = await fleet.connect(number, operation.number)
        fleet.exchange.join(number)
    worker.backend.refused.add("m")

    await asyncio.gather(fleet.begin(1), fleet.begin(2))

    assert states(await fleet.control(1).repository.index()) == {
        "good": "READY",
        "m": "UNAVAILABLE",
    }
    with pytest.raises(CoreError):
        fleet.workers[1].server.models.is_ready("m")
    await fleet.close()


async def test_a_load_survives_the_death_of_a_worker_that_takes_part(start, folder):
    folder.model("m", config=CONFIG)
    fleet = await start()
    fleet.die(2)

    await fleet.control(1).repository.load("m", {})

    assert fleet.workers[1].server.models.is_ready("m")


async def test_loads_that_contradict_each_other_end_alike_everywhere(start, folder):
    folder.model("m", config=CONFIG)
    fleet = await start()

    await asyncio.gather(
        *(fleet.control(1 + i % 2).repository.load("m", {}) for i in range(4)),
        *(fleet.control(1 + i % 2).repository.unload("m") for i in range(4)),
        *(fleet.control(1 + i % 2).repository.load("m", {}) for i in range(3)),
    )

    found = [worker.server.manager.index() for worker in fleet.workers.values()]
    assert found[0] == found[1]


async def test_files_of_a_load_reach_all(start, folder):
    fleet = await start()
    files = {
        "config": '{"backend": "test", "max_batch_size": 0}',
        "file:1/model.bin": b"\0\xff" * 500,
    }

    await fleet.control(1).repository.load("brought", files)

    for worker in fleet.workers.values():
        (version,) = worker.server.models.versions()
        assert (version.path / "model.bin").read_bytes() == b"\0\xff" * 500


async def test_settings_of_the_traces_are_the_same_everywhere(start):
    fleet = await start()

    told = await fleet.control(2).settings.change_trace_settings({"trace_rate": "7"})

    assert told["trace_rate"] == "7"
    assert fleet.workers[1].server.control.settings.trace_settings()["trace_rate"] == "7"


async def test_a_change_in_all_workers_has_one_line_of_the_audit(start, caplog):
    fleet = await start()
    caplog.set_level("INFO", "core")

    await fleet.control(2).settings.change_trace_settings({"trace_rate": "7"})

    assert [text for text in caplog.messages if text.startswith("audit: ")] == [
        "audit: settings.change_trace_settings by the server's own process done: trace trace_rate"
    ]


async def test_a_setting_that_cannot_be_is_refused_as_one_server_does(start):
    fleet = await start()

    with pytest.raises(CoreError) as caught:
        await fleet.control(1).settings.change_trace_settings({"trace_rate": "many"})

    assert caught.value.message == "Unable to parse 'trace_rate', got: many"
    assert fleet.workers[2].server.control.settings.trace_settings()["trace_rate"] == "1000"


async def test_ready_is_when_all_are(start, folder):
    folder.model("m", config=CONFIG)
    fleet = await start(load_model=["m"])
    assert await fleet.control(1).health.ready()

    fleet.relay.complete = False

    assert not await fleet.control(1).health.ready()


async def test_a_worker_that_says_nothing_is_not_ready_and_named(start, folder):
    fleet = await start()
    fleet.exchange.connect(2, lambda head, body: None)

    assert not await fleet.control(1).health.ready()
    with pytest.raises(CoreError, match="worker 2 of the server does not answer") as caught:
        await fleet.control(1).health.metrics()
    assert caught.value.kind is Kind.UNAVAILABLE


async def test_a_worker_that_has_ended_is_not_waited_for(start, folder):
    folder.model("m", config=CONFIG)
    fleet = await start(load_model=["m"])
    fleet.exchange.connect(2, lambda head, body: None)
    asked = asyncio.ensure_future(fleet.control(1).health.statistics())
    while not fleet.exchange._questions:
        await asyncio.sleep(0)

    fleet.die(2)

    assert [each["name"] for each in await asked] == ["m"]


async def test_who_comes_later_catches_up(start, folder):
    folder.model("m", config=CONFIG)
    folder.model("gone", config=CONFIG)
    fleet = await start(load_model=["gone"])
    await fleet.control(1).settings.change_trace_settings({"trace_rate": "7"})
    await fleet.control(1).repository.load("m", {})
    await fleet.control(1).settings.change_trace_settings({"trace_rate": "8"}, "m")
    await fleet.control(1).repository.unload("gone")
    fleet.die(2)
    await fleet.workers[2].server.stop(5)

    operation = fleet.exchange.begin({2})
    worker = await fleet.connect(2, operation.number)
    await fleet.begin(2)
    await fleet.exchange.catch_up(2)

    assert worker.server.control.settings.trace_settings()["trace_rate"] == "7"
    assert worker.server.control.settings.trace_settings("m")["trace_rate"] == "8"
    assert states(worker.server.manager.index(ready_only=True)) == {"m": "READY"}


async def test_sequences_are_refused_by_name(start, folder):
    folder.model("s", config=CONFIG + "sequence_batching { }")
    fleet = await start()

    with pytest.raises(CoreError, match="model 's' has sequence_batching") as caught:
        await fleet.control(1).repository.load("s", {})

    assert "--workers=2" in caught.value.message


async def test_sequences_of_one_request_are_served(start, folder):
    folder.model("s", config=CONFIG + "sequence_batching { iterative_sequence: true }")
    fleet = await start()

    await fleet.control(1).repository.load("s", {})

    assert fleet.workers[2].server.models.is_ready("s")


async def test_sequences_that_keep_their_connection_are_served(start, folder):
    promise = 'parameters { key: "sequences_keep_their_connection" value { string_value: "true" } }'
    folder.model("s", config=f"{CONFIG} sequence_batching {{ }} {promise}")
    fleet = await start()

    await fleet.control(1).repository.load("s", {})

    assert fleet.workers[2].server.models.is_ready("s")


async def test_without_a_supervisor_questions_and_loads_end(start, folder):
    folder.model("m", config=CONFIG)
    fleet = await start()
    worker = fleet.workers[1]

    worker.channel.close()
    await worker.member.end.wait()

    assert worker.member.orphaned
    with pytest.raises(CoreError, match="Server exiting"):
        await fleet.control(1).repository.load("m", {})


async def test_all_look_at_the_repositories_when_the_supervisor_says_so(start, folder):
    fleet = await start(model_control_mode="poll")
    folder.model("m", config=CONFIG)

    await fleet.exchange.change("repository.poll", b"[]")

    for worker in fleet.workers.values():
        assert worker.server.models.is_ready("m")
