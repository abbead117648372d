"""The startup models of each control mode, and the stop."""

import asyncio
import logging
import threading

import pytest

from core.errors import CoreError, Kind


async def started(manager):
    await manager.start()
    return manager


def ready(manager):
    return {entry["name"] for entry in manager.index(True)}


@pytest.fixture
def models(folder, config):
    for name in ("a", "b", "c"):
        folder.model(name, config=config, text="2")


# start ---------------------------------------------------------------------------


async def test_mode_none_loads_every_model(models, manage):
    manager = await started(manage("none"))

    assert ready(manager) == {"a", "b", "c"}
    assert manager.all_ready()


async def test_mode_explicit_loads_the_named_models(models, manage):
    assert ready(await started(manage("explicit", load_model=["a", "c"]))) == {"a", "c"}


async def test_mode_explicit_loads_all_models_for_a_star(models, manage):
    assert ready(await started(manage("explicit", load_model=["*"]))) == {"a", "b", "c"}


async def test_models_of_several_repositories_are_loaded(models, manage, folder, other, config):
    other.model("d", config=config, text="1")
    repositories = [str(folder.path), str(other.path)]

    manager = await started(manage("none", model_repository=repositories))

    assert ready(manager) == {"a", "b", "c", "d"}


async def test_an_empty_repository_is_allowed(folder, manage):
    manager = await started(manage("none"))

    assert manager.index(False) == []
    assert manager.all_ready()


async def test_a_model_that_fails_ends_the_start_after_the_others_were_tried(
    models, manage, folder, config
):
    folder.model("bad", config=config, text="fail: broken")
    manager = manage("none")

    with pytest.raises(CoreError) as error:
        await manager.start()

    assert (error.value.kind, error.value.message) == (
        Kind.INTERNAL,
        "failed to load all models: 'bad' cannot be loaded; with --exit-on-error=false the server starts "
        "without them",
    )
    table = {name: state for name, _, state in manager.table()}
    failure = table.pop("bad")
    assert table == {"a": "READY", "b": "READY", "c": "READY"}
    assert failure.startswith(
        "UNAVAILABLE: Internal: backend 'test', load() at tests/unit/lifecycle/"
    )
    assert failure.endswith(": RuntimeError: fail: broken")


async def test_a_failed_model_leaves_the_server_not_ready_if_it_continues(
    models, manage, folder, config
):
    folder.model("bad", config=config, text="fail: broken")

    manager = await started(manage("none", exit_on_error=False))

    assert ready(manager) == {"a", "b", "c"}
    assert not manager.all_ready()


@pytest.mark.parametrize("mode", ["none", "explicit"])
async def test_a_named_model_that_is_absent_ends_the_start(models, manage, mode):
    manager = manage("explicit", load_model=["a", "absent"])

    with pytest.raises(CoreError):
        await manager.start()


async def test_a_missing_repository_ends_the_start_whatever_the_options(manage, tmp_path):
    missing = str(tmp_path / "missing")
    manager = manage("none", model_repository=[missing], exit_on_error=False)

    with pytest.raises(CoreError, match="missing"):
        await manager.start()


async def test_a_name_in_two_repositories_is_unavailable(models, manage, folder, other, config):
    other.model("a", config=config, text="3")
    manager = manage("none", model_repository=[str(folder.path), str(other.path)])

    with pytest.raises(CoreError):
        await manager.start()

    assert {
        "name": "a",
        "state": "UNAVAILABLE",
        "reason": "model appears in two or more repositories",
    } in manager.index(False)
    assert ready(manager) == {"b", "c"}


async def test_a_model_without_a_version_shows_in_the_table(folder, manage, config):
    folder.model("m", versions=(), config=config)
    manager = await started(manage("none", exit_on_error=False))

    ((name, version, status),) = manager.table()
    assert (name, version) == ("m", "-")
    # A plugin may add what is wrong with the layout.
    assert status.startswith(
        "Not loaded: at least one version must be available under the version policy of model 'm'"
    )
    assert not manager.all_ready()


async def test_concurrent_loads_are_limited_by_the_options(models, manage, backend):
    backend.gate = threading.Event()
    manager = manage("none", model_load_thread_count=2)
    start = asyncio.ensure_future(manager.start())

    def loads():
        return sum(event.startswith("load") for event in backend.calls)

    while loads() < 2:
        await asyncio.sleep(0.001)
    for _ in range(20):
        await asyncio.sleep(0)
    assert loads() == 2
    backend.gate.set()
    await start

    assert loads() == 3


# stop ----------------------------------------------------------------------------


async def test_stop_unloads_everything(models, manage, backend, ticker):
    manager = await started(manage("none"))
    ticker.flows = True

    assert await manager.stop(30) == 0

    assert sum(event.startswith("unload") for event in backend.calls) == 3
    assert backend.calls[-1] == "close backend"


async def test_stop_waits_for_the_last_reply_and_returns_zero(
    models, manage, backend, ticker, caplog
):
    caplog.set_level(logging.INFO, "core")
    manager = await started(manage("none"))
    backend.go.clear()
    replies = [manager.ask("a"), manager.ask("b"), manager.ask("b")]
    stop = asyncio.ensure_future(manager.stop(30))
    await asyncio.sleep(0)

    backend.go.set()
    for reply in replies:
        assert (await reply).output("y").array[0] == 2
    ticker.flows = True
    ticker._wake.set()

    assert await stop == 0
    assert "Timeout 30: Found 2 model versions that have in-flight inferences" in caplog.messages
    assert "All models are stopped, unloading models" in caplog.messages


async def test_a_model_can_still_ask_another_while_the_server_stops(
    models, manage, backend, ticker
):
    manager = await started(manage("none"))
    backend.go.clear()
    running = manager.ask("a")
    stop = asyncio.ensure_future(manager.stop(30))
    await asyncio.sleep(0)

    inner = manager.ask("b")
    backend.go.set()
    ticker.flows = True
    ticker._wake.set()

    assert (await inner).output("y").array[0] == 2
    assert (await running).output("y").array[0] == 2
    assert await stop == 0


async def test_stop_ends_after_its_time_and_counts_busy_versions(
    models, manage, backend, ticker, caplog
):
    caplog.set_level(logging.INFO, "core")
    manager = await started(manage("none"))
    ticker.flows = True
    backend.go.clear()
    reply = manager.ask("a")

    left = await manager.stop(3)

    assert left == 3
    for seconds in (3, 2, 1, 0):
        text = f"Timeout {seconds}: Found 1 model versions that have in-flight inferences"
        assert caplog.messages.count(text) == 1
    backend.go.set()
    await reply


async def test_load_is_refused_once_the_server_stops(models, manage, ticker):
    manager = await started(manage("explicit"))
    ticker.flows = True
    await manager.stop(1)

    with pytest.raises(CoreError) as error:
        await manager.load("a", {})

    assert error.value.kind is Kind.UNAVAILABLE


async def test_stop_waits_for_a_load_that_runs(models, manage, backend, ticker):
    backend.gate = threading.Event()
    manager = await started(manage("explicit"))
    load = asyncio.ensure_future(manager.load("a", {}))
    while "load a:1" not in backend.calls:
        await asyncio.sleep(0.001)
    stop = asyncio.ensure_future(manager.stop(30))
    await asyncio.sleep(0)

    backend.gate.set()
    await load
    ticker.flows = True
    ticker._wake.set()

    assert await stop == 0
    assert "unload a:1" in backend.calls


async def test_stop_twice_is_stop_once(models, manage, ticker):
    manager = await started(manage("none"))
    ticker.flows = True

    assert await manager.stop(30) == 0
    assert await manager.stop(30) == 0
