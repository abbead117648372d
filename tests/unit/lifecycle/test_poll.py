"""Polling: the models follow the folders. Each tick is one look."""

import shutil

import pytest

from .test_ensembles import ensemble


@pytest.fixture
async def polled(folder, manage, config):
    """A polling manager with the model m, which doubles."""
    folder.model("m", config=config, text="2")
    manager = manage("poll", exit_on_error=False)
    await manager.start()
    return manager


def rewrite(folder, text):
    (folder.path / "m" / "1" / "model.txt").write_text(text)


async def test_a_poll_without_changes_has_no_effect(polled, ticker, backend):
    version = polled.resolve("m")

    await ticker.tick()
    await ticker.tick()

    assert polled.resolve("m") is version
    assert backend.calls.count("load m:1") == 1


async def test_polls_follow_the_interval_of_the_options(folder, manage, ticker):
    manager = manage("poll", repository_poll_secs=7)
    await manager.start()
    await ticker.tick()
    before = ticker.now

    await ticker.tick()

    assert ticker.now - before == 7


async def test_a_new_model_is_loaded(polled, folder, ticker, config):
    folder.model("n", config=config, text="3")

    await ticker.tick()

    assert await polled.factor("n") == 3


async def test_a_changed_model_is_reloaded(polled, folder, ticker):
    rewrite(folder, "30")

    await ticker.tick()

    assert await polled.factor() == 30


async def test_a_removed_model_is_unloaded(polled, folder, ticker):
    shutil.rmtree(folder.path / "m")

    await ticker.tick()
    await polled.settled()

    assert polled.ready_versions("m") == []
    assert polled.index(False) == []
    assert polled.all_ready()


async def test_removed_models_leave_no_objects(polled, folder, ticker, config):
    """Their names may be new ones every day, and each is a series of metrics."""
    for number in range(3):
        folder.model(f"n{number}", config=config, text="3")
        await ticker.tick()
        shutil.rmtree(folder.path / f"n{number}")
        await ticker.tick()
        await polled.settled()
    folder.model("last", config=config, text="3")
    await ticker.tick()

    assert {name for _, name, _ in polled.results()} == {"m", "last"}


async def test_an_unknown_step_is_reported_once(polled, folder, ticker, caplog):
    folder.model("e", config=ensemble("nowhere"))

    for _ in range(3):
        await ticker.tick()

    assert len([each for each in caplog.messages if "poll model 'nowhere'" in each]) == 1


async def test_a_model_that_comes_back_unchanged_is_loaded_again(polled, folder, ticker):
    (folder.path / "m").rename(folder.path.parent / "away")
    await ticker.tick()
    (folder.path.parent / "away").rename(folder.path / "m")

    await ticker.tick()

    assert await polled.factor() == 2


async def test_a_new_version_takes_over(polled, folder, ticker):
    folder.version("m", 2, "30")

    await ticker.tick()
    await polled.settled()

    assert await polled.factor() == 30
    assert polled.entries("m") == {1: "UNAVAILABLE", 2: "READY"}


async def test_a_failed_reload_keeps_the_old_version_and_waits_for_a_change(
    polled, folder, ticker, backend
):
    rewrite(folder, "fail: broken")

    await ticker.tick()
    await ticker.tick()

    assert await polled.factor() == 2
    assert backend.calls.count("load m:1") == 2
    rewrite(folder, "40")
    await ticker.tick()
    assert await polled.factor() == 40


async def test_a_config_that_is_broken_for_a_while_keeps_the_old_version(
    polled, folder, ticker, config, caplog
):
    file = folder.path / "m" / "config.pbtxt"
    file.write_text("input [")
    await ticker.tick()
    await ticker.tick()
    assert await polled.factor() == 2
    assert len([each for each in caplog.messages if "config.pbtxt" in each]) == 1

    file.write_text(config)
    rewrite(folder, "5")
    await ticker.tick()

    assert await polled.factor() == 5


async def test_a_model_that_failed_at_the_start_is_loaded_once_it_is_repaired(
    folder, manage, ticker, config
):
    folder.model("m", config=config, text="fail: broken")
    manager = manage("poll", exit_on_error=False)
    await manager.start()

    rewrite(folder, "6")
    await ticker.tick()

    assert await manager.factor() == 6
    assert manager.all_ready()


async def test_a_name_that_appears_in_a_second_repository_keeps_serving(
    folder, other, manage, ticker, config
):
    folder.model("m", config=config, text="2")
    manager = manage("poll", model_repository=[str(folder.path), str(other.path)])
    await manager.start()
    other.model("m", config=config, text="3")

    await ticker.tick()

    assert await manager.factor() == 2


async def test_a_repository_that_cannot_be_listed_unloads_no_model(polled, folder, ticker):
    folder.path.rename(folder.path.parent / "away")

    await ticker.tick()

    assert await polled.factor() == 2
    (folder.path.parent / "away").rename(folder.path)
    await ticker.tick()
    assert await polled.factor() == 2


async def test_an_ensemble_waits_for_the_model_that_it_needs(folder, manage, ticker, config):
    folder.model(
        "e",
        config="""
        platform: "ensemble"
        input [ { name: "x" data_type: TYPE_FP32 dims: [ -1 ] } ]
        output [ { name: "y" data_type: TYPE_FP32 dims: [ -1 ] } ]
        ensemble_scheduling { step {
          model_name: "m" model_version: -1
          input_map { key: "x" value: "x" } output_map { key: "y" value: "y" } } }
        """,
    )
    manager = manage("poll", exit_on_error=False)
    await manager.start()
    assert manager.ready_versions("e") == []

    folder.model("m", config=config, text="2")
    await ticker.tick()

    assert await manager.factor("e") == 2


async def test_a_removed_model_goes_also_when_an_ensemble_needs_it(folder, manage, ticker, config):
    folder.model("m", config=config, text="2")
    folder.model("e", config=ensemble("m"))
    manager = manage("poll")
    await manager.start()
    assert await manager.factor("e") == 2

    shutil.move(folder.path / "m", folder.path.parent / "away")
    await ticker.tick()
    await manager.settled()
    assert manager.ready_versions("m") == manager.ready_versions("e") == []
    shutil.move(folder.path.parent / "away", folder.path / "m")
    await ticker.tick()

    assert await manager.factor("e") == 2
