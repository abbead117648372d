"""The progress of a loading model: in responses, in the index, in the log."""

import asyncio
import logging
import threading

import pytest

from core.errors import CoreError, Kind, Loading
from core.lifecycle import progress

ENSEMBLE = """
platform: "ensemble"
input [ { name: "x" data_type: TYPE_FP32 dims: [ -1 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ -1 ] } ]
ensemble_scheduling { step { model_name: "m" model_version: -1
  input_map { key: "x" value: "x" } output_map { key: "y" value: "y" } } }
"""


@pytest.fixture
async def gate(backend):
    """Loads wait for it."""
    backend.gate = threading.Event()
    return backend.gate


async def until(condition):
    for _ in range(2000):
        if condition():
            return
        await asyncio.sleep(0.005)
    raise AssertionError("it did not happen within ten seconds")


def refused(manager, *args):
    with pytest.raises(CoreError) as error:
        manager.resolve(*args)
    return error.value


async def test_a_loading_model_reports_its_progress(folder, started, config, backend, gate):
    folder.model("m", (1, 2), config + "version_policy { all { } }", "2")
    manager = await started(model_load_thread_count=1)
    load = asyncio.create_task(manager.load("m", {}))
    await until(lambda: backend.calls.count("load m:1") == 1)

    error = refused(manager, "m")
    assert isinstance(error, Loading) and error.kind is Kind.UNAVAILABLE
    assert error.message == (
        "model 'm' is loading for 0 s, 0 of 2 versions loaded: version 1 loads its files, version 2 "
        "waits for its turn; ask again later"
    )
    assert refused(manager, "m", 2).message == error.message
    assert refused(manager, "m", 9).message == error.message
    assert manager.reason("m", 1) == "it loads its files, for 0 s"

    gate.set()
    await load
    assert manager.resolve("m").version == 2
    assert refused(manager, "m", 9).kind is Kind.NOT_FOUND
    assert manager.reason("m", 1) == ""


async def test_an_ensemble_reports_the_models_for_which_it_waits(
    folder, manage, config, backend, gate
):
    folder.model("m", (1,), config, "2")
    folder.model("e", (1,), ENSEMBLE)
    manager = manage("none")
    start = asyncio.create_task(manager.start())
    await until(lambda: backend.calls.count("load m:1") == 1)

    assert refused(manager, "e").message == (
        "model 'e' is loading for 0 s: it waits for 'm'; ask again later"
    )

    gate.set()
    await start
    assert manager.resolve("e").version == 1


async def test_a_loading_model_does_not_disturb_serving_ones(
    folder, started, config, backend, gate
):
    gate.set()
    folder.model("m", (1,), config, "2")
    manager = await started(load_model=["m"])
    gate.clear()
    folder.version("m", 2, "3")
    load = asyncio.create_task(manager.load("m", {}))
    await until(lambda: backend.calls.count("load m:2") == 1)

    assert await manager.factor("m") == 2
    assert refused(manager, "m", 9).kind is Kind.NOT_FOUND
    assert isinstance(refused(manager, "m", 2), Loading)

    gate.set()
    await load


async def test_a_load_that_has_failed_is_not_going_on(folder, started, config, refusal):
    folder.model("m", (1,), config, "fail")
    manager = await started()
    await refusal(manager.load("m", {}))

    assert refused(manager, "m").message == (
        "Request for unknown model: 'm' has no available versions"
    )
    assert refused(manager, "m").kind is Kind.NOT_FOUND


async def test_while_the_repositories_are_read_no_model_is_unknown(folder, manage, config):
    folder.model("m", (1,), config, "2")
    manager = manage("none")
    reading, read = threading.Event(), threading.Event()
    survey = manager._catalog.survey_all

    def slow_survey():
        reading.set()
        assert read.wait(10)
        return survey()

    manager._catalog.survey_all = slow_survey
    start = asyncio.create_task(manager.start())
    await until(reading.is_set)

    error = refused(manager, "m")
    assert isinstance(error, Loading)
    assert "does not know yet whether they hold model 'm'" in error.message

    read.set()
    await start
    assert refused(manager, "absent").kind is Kind.NOT_FOUND


async def test_a_long_load_is_in_the_log(
    folder, started, config, backend, gate, monkeypatch, caplog
):
    monkeypatch.setattr(progress, "LOG_EVERY_S", 0.01)
    caplog.set_level(logging.INFO, "core")
    folder.model("m", (1,), config, "2")
    manager = await started()
    load = asyncio.create_task(manager.load("m", {}))
    line = "still loading: m:1, 0 s: it loads its files"
    await until(lambda: caplog.messages.count(line) > 1)

    gate.set()
    await load

    said = [each for each in caplog.messages if each.startswith("still loading")]
    await asyncio.sleep(0.05)
    assert [each for each in caplog.messages if each.startswith("still loading")] == said
