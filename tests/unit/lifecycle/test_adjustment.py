"""A load with only other instance groups changes the instances of the serving version."""

import asyncio
import json

import pytest

from core.config import to_json
from core.errors import CoreError

TWO = "instance_group [ { count: 2 } ]"
THREE = "instance_group [ { count: 3 } ]"


@pytest.fixture
async def doubling(folder, manage, config):
    """A started manager with two instances of the model m, which doubles."""
    folder.model("m", config=config + TWO, text="2")
    manager = manage(load_model=["m"])
    await manager.start()
    return manager


def configure(folder, text):
    (folder.path / "m" / "config.pbtxt").write_text(text)


def shown(manager, version=-1):
    """Return the number of instances in the configuration of a version."""
    return sum(group.count for group in manager.resolve("m", version).config.instance_group)


def override(manager, **changes):
    """Return a load parameter: the current configuration, as clients see it, with changes."""
    return {"config": json.dumps({**to_json(manager.resolve("m").config), **changes})}


async def test_the_version_serves_on_with_other_instances(doubling, folder, backend, config):
    version, content = doubling.resolve("m"), doubling.resolve("m").content
    await doubling.factor()

    configure(folder, config + THREE)
    await doubling.load("m", {})
    await doubling.factor()

    assert doubling.resolve("m") is version
    assert backend.calls.count("load m:1") == 1
    assert backend.calls.count("open m:1") == 3
    assert shown(doubling) == 3
    assert version.statistics.inference_count == 2
    assert version.content == content  # answers in a cache stay good


async def test_surplus_instances_close_after_their_requests(doubling, folder, backend, config):
    backend.go.clear()
    held = [doubling.ask(value=value) for value in (1, 2, 3)]

    configure(folder, config)
    await doubling.load("m", {})
    assert doubling.entries("m") == {1: "READY"}
    assert "close m:1" not in backend.calls
    backend.go.set()

    assert [(await reply).output("y").array[0] for reply in held] == [2, 4, 6]
    while "close m:1" not in backend.calls:
        await asyncio.sleep(0.001)
    assert shown(doubling) == 1


async def test_the_model_is_ready_while_instances_open(doubling, folder, config):
    states = set()
    configure(folder, config + THREE)

    loading = asyncio.ensure_future(doubling.load("m", {}))
    while not loading.done():
        states.add((doubling.resolve("m").state, await doubling.factor()))

    await loading
    assert states == {("READY", 2)}


async def test_an_override_may_change_the_count_and_a_plain_load_takes_it_back(doubling, backend):
    version = doubling.resolve("m")

    for count in (5, 4, 1):
        await doubling.load("m", override(doubling, instance_group=[{"count": count}]))
        assert (shown(doubling), await doubling.factor()) == (count, 2)
    await doubling.load("m", {})

    assert shown(doubling) == 2
    assert doubling.resolve("m") is version
    assert backend.calls.count("load m:1") == 1
    assert backend.calls.count("open m:1") == 6  # two, three more, and one when it is two again


async def test_any_other_change_with_it_is_a_load(doubling, backend):
    changed = override(doubling, instance_group=[{"count": 3}], parameters={"a": {}})

    await doubling.load("m", changed)

    assert backend.calls.count("load m:1") == 2
    assert shown(doubling) == 3


async def test_changed_files_with_it_are_a_load(doubling, folder, backend, config):
    configure(folder, config + THREE)
    (folder.path / "m" / "1" / "model.txt").write_text("30")

    await doubling.load("m", {})

    assert backend.calls.count("load m:1") == 2
    assert await doubling.factor() == 30


async def test_an_instance_that_cannot_open_fails_the_load_and_keeps_the_old_ones(
    doubling, folder, backend, config, monkeypatch
):
    def refuse(instance):
        raise RuntimeError("no room")

    version = doubling.resolve("m")
    configure(folder, config + THREE)
    monkeypatch.setattr(backend.instance, "open", refuse)
    with pytest.raises(CoreError) as error:
        await doubling.load("m", {})

    assert error.value.message.startswith(
        "load failed for model 'm': version 1 is at READY state: Internal: backend 'test', open() at "
    )
    assert error.value.message.endswith(": RuntimeError: no room;\n")
    assert doubling.entries("m") == {1: "READY"}
    assert (shown(doubling), await doubling.factor()) == (2, 2)
    assert version.model.config is version.config
    monkeypatch.undo()
    await doubling.load("m", {})
    assert shown(doubling) == 3
    assert doubling.resolve("m") is version


async def test_opening_is_retried_as_often_as_the_options_allow(
    folder, manage, config, backend, monkeypatch
):
    folder.model("m", config=config, text="2")
    manager = manage(load_model=["m"], model_load_retry_count=1)
    await manager.start()
    tries = []

    def refuse_once(instance):
        tries.append(instance.name)
        if len(tries) == 1:
            raise RuntimeError("no room")

    monkeypatch.setattr(backend.instance, "open", refuse_once)
    configure(folder, config + TWO)
    await manager.load("m", {})

    assert tries == ["m_0_1", "m_0_1"]
    assert shown(manager) == 2


async def test_a_wrong_group_fails_as_any_wrong_configuration(doubling, folder, config):
    configure(folder, config + "instance_group [ { kind: KIND_CPU gpus: [ 0 ] } ]")

    with pytest.raises(CoreError, match="has kind KIND_CPU but specifies one or more GPUs"):
        await doubling.load("m", {})

    assert (shown(doubling), await doubling.factor()) == (2, 2)


async def test_polling_changes_instances_in_place(folder, manage, config, backend, ticker):
    folder.model("m", config=config, text="2")
    manager = manage("poll")
    await manager.start()
    version = manager.resolve("m")

    configure(folder, config + THREE)
    await ticker.tick()

    assert manager.resolve("m") is version
    assert (shown(manager), backend.calls.count("open m:1")) == (3, 3)


async def test_every_version_changes_and_new_ones_load(folder, manage, config, backend):
    every = "version_policy { all { } }"
    folder.model("m", config=config + every, text="2")
    folder.version("m", 2, "3")
    manager = manage(load_model=["m"])
    await manager.start()

    folder.version("m", 3, "4")
    configure(folder, config + every + TWO)
    await manager.load("m", {})

    assert [shown(manager, version) for version in (1, 2, 3)] == [2, 2, 2]
    assert [backend.calls.count(f"load m:{version}") for version in (1, 2, 3)] == [1, 1, 1]


async def test_a_version_that_cannot_load_keeps_the_others_from_changing(
    folder, manage, config, backend
):
    every = "version_policy { all { } }"
    folder.model("m", config=config + every, text="2")
    manager = manage(load_model=["m"])
    await manager.start()

    folder.version("m", 2, "fail")
    configure(folder, config + every + THREE)
    with pytest.raises(CoreError, match="version 2 is at UNAVAILABLE state"):
        await manager.load("m", {})

    assert (shown(manager, 1), await manager.factor()) == (1, 2)
    while backend.calls.count("close m:1") < 2:
        await asyncio.sleep(0.001)


async def test_a_change_that_another_process_refuses_has_no_effect(
    doubling, folder, config, backend
):
    async def object_to(model, objection):
        return "worker 2: no room"

    doubling._host._agree = object_to
    configure(folder, config + THREE)

    with pytest.raises(CoreError, match="worker 2: no room"):
        await doubling.load("m", {})

    assert (shown(doubling), await doubling.factor()) == (2, 2)
    assert backend.calls.count("close m:1") == 1


async def test_an_ensemble_calls_a_model_with_changing_instances(doubling, folder, config, backend):
    folder.model(
        "e",
        config="""
            platform: "ensemble"
            input [ { name: "x" data_type: TYPE_FP32 dims: [ -1 ] } ]
            output [ { name: "y" data_type: TYPE_FP32 dims: [ -1 ] } ]
            ensemble_scheduling { step [ { model_name: "m" model_version: -1
                input_map { key: "x" value: "x" } output_map { key: "y" value: "y" } } ] }
        """,
        text="",
    )
    await doubling.load("e", {})
    ensemble = doubling.resolve("e")
    backend.go.clear()
    held = [doubling.ask("e", value) for value in (1, 2, 3, 4)]

    configure(folder, config)
    await doubling.load("m", {})
    backend.go.set()

    assert [(await reply).output("y").array[0] for reply in held] == [2, 4, 6, 8]
    assert doubling.resolve("e") is ensemble
    assert await doubling.factor("e") == 2
