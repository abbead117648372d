"""A reload: the old version serves until the new one is ready, and finishes its accepted requests."""

import asyncio
import threading

import pytest

from core.errors import CoreError, Kind


@pytest.fixture
async def doubling(folder, manage, config):
    """A started manager with the model m, which doubles."""
    folder.model("m", config=config, text="2")
    manager = manage(load_model=["m"])
    await manager.start()
    return manager


def rewrite(folder, text, version=1):
    (folder.path / "m" / str(version) / "model.txt").write_text(text)


async def until(condition):
    """Let the loop run until something that worker threads do has happened."""
    while not condition():
        await asyncio.sleep(0.001)


async def test_a_request_finishes_on_the_version_that_accepted_it(doubling, folder, backend):
    backend.go.clear()
    before = doubling.ask()
    rewrite(folder, "30")

    await doubling.load("m", {})
    after = doubling.ask()
    backend.go.set()

    assert (await before).output("y").array[0] == 2
    assert (await after).output("y").array[0] == 30


async def test_the_old_version_serves_while_the_new_one_loads(doubling, folder, backend):
    backend.gate = threading.Event()
    rewrite(folder, "30")
    loading = asyncio.ensure_future(doubling.load("m", {}))
    await until(lambda: backend.calls.count("load m:1") == 2)

    assert await doubling.factor() == 2
    assert doubling.index(True) == [{"name": "m", "version": "1", "state": "READY"}]
    backend.gate.set()
    await loading

    assert await doubling.factor() == 30


async def test_the_old_version_is_freed_after_its_last_request(doubling, folder, backend):
    backend.go.clear()
    before = doubling.ask()
    rewrite(folder, "30")
    await doubling.load("m", {})
    assert "unload m:1" not in backend.calls

    backend.go.set()
    await before
    await doubling.settled()

    assert backend.calls.count("unload m:1") == 1
    assert doubling.entries("m") == {1: "READY"}


async def test_a_failed_reload_keeps_the_old_version(doubling, folder):
    rewrite(folder, "fail: broken")

    with pytest.raises(CoreError) as error:
        await doubling.load("m", {})

    assert "broken" in error.value.message
    assert await doubling.factor() == 2
    assert doubling.all_ready()


async def test_a_failed_reload_is_tried_again_by_the_next_load(doubling, folder):
    rewrite(folder, "fail: broken")
    with pytest.raises(CoreError):
        await doubling.load("m", {})
    with pytest.raises(CoreError):
        await doubling.load("m", {})

    rewrite(folder, "4")
    await doubling.load("m", {})

    assert await doubling.factor() == 4


async def test_a_broken_config_keeps_the_old_version(doubling, folder):
    (folder.path / "m" / "config.pbtxt").write_text("{")

    with pytest.raises(CoreError) as error:
        await doubling.load("m", {})

    assert error.value.kind is Kind.INTERNAL
    assert await doubling.factor() == 2


async def test_a_removed_folder_keeps_the_old_version(doubling, folder):
    (folder.path / "m").rename(folder.path / "away")

    with pytest.raises(CoreError):
        await doubling.load("m", {})

    assert await doubling.factor() == 2


async def test_a_new_version_takes_over_from_the_old(doubling, folder):
    folder.version("m", 2, "30")

    await doubling.load("m", {})
    await doubling.settled()

    assert await doubling.factor() == 30
    assert doubling.entries("m") == {1: "UNAVAILABLE", 2: "READY"}
    assert doubling.reason("m", 1) == "unloaded"
    assert doubling.all_ready()


async def test_a_new_version_that_fails_keeps_the_old(doubling, folder):
    folder.version("m", 2, "fail: broken")

    with pytest.raises(CoreError):
        await doubling.load("m", {})

    assert await doubling.factor() == 2
    assert doubling.entries("m") == {1: "READY", 2: "UNAVAILABLE"}


async def test_a_failed_version_without_files_is_removed(doubling, folder):
    folder.version("m", 2, "fail: broken")
    with pytest.raises(CoreError):
        await doubling.load("m", {})
    (folder.path / "m" / "2").rename(folder.path / "m" / "_2")

    await doubling.load("m", {})

    assert doubling.entries("m") == {1: "READY"}
    assert doubling.all_ready()


async def test_another_version_policy_loads_and_unloads_the_difference(
    doubling, folder, config, backend
):
    folder.version("m", 2, "30")
    await doubling.load("m", {})
    second = doubling.resolve("m", 2)

    policy = "version_policy { all { } }"
    (folder.path / "m" / "config.pbtxt").write_text(config + policy)
    await doubling.load("m", {})

    assert doubling.resolve("m", 2) is second
    assert doubling.ready_versions("m") == [1, 2]


async def test_a_touched_file_of_one_version_reloads_that_version_alone(
    doubling, folder, config, backend
):
    (folder.path / "m" / "config.pbtxt").write_text(config + "version_policy { all { } }")
    folder.version("m", 2, "30")
    await doubling.load("m", {})
    first = doubling.resolve("m", 1)

    rewrite(folder, "40", version=2)
    await doubling.load("m", {})

    assert doubling.resolve("m", 1) is first
    assert await doubling.factor("m", 2) == 40


async def test_loads_of_one_model_at_the_same_time_follow_each_other(doubling, folder, backend):
    rewrite(folder, "30")

    await asyncio.gather(*(doubling.load("m", {}) for _ in range(5)))

    assert await doubling.factor() == 30
    assert backend.calls.count("load m:1") == 2


async def test_load_and_unload_at_the_same_time_end_in_one_of_both(doubling, folder):
    rewrite(folder, "30")

    await asyncio.gather(doubling.load("m", {}), doubling.unload("m"), doubling.load("m", {}))
    await doubling.settled()

    assert doubling.entries("m")[1] in ("READY", "UNAVAILABLE")


async def test_reloads_under_traffic_lose_no_request(doubling, folder):
    wrong, answered = [], 0
    done = asyncio.Event()

    async def client():
        nonlocal answered
        while not done.is_set():
            try:
                response = await doubling.ask()
            except CoreError as error:
                wrong.append(error)
            else:
                answered += 1
                if response.output("y").array[0] not in (2, 30):
                    wrong.append(response)

    clients = [asyncio.ensure_future(client()) for _ in range(4)]
    for text in ("30", "2") * 5:
        rewrite(folder, text)
        await doubling.load("m", {})
    done.set()
    await asyncio.gather(*clients)

    assert not wrong
    assert answered > 100
