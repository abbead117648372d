"""Explicit load: effects, responses and the index."""

import asyncio
import re
import threading

import pytest

from core.errors import Kind


async def test_no_model_is_loaded_at_the_start_of_explicit_mode(folder, started, config):
    folder.model("m", config=config, text="2")

    manager = await started()

    assert manager.index(False) == [{"name": "m"}]
    assert manager.index(True) == []
    assert manager.all_ready()


async def test_a_loaded_model_is_ready_and_answers(folder, started, config):
    folder.model("m", config=config, text="2")
    manager = await started()

    await manager.load("m", {})

    assert await manager.factor() == 2
    assert manager.index(True) == [{"name": "m", "version": "1", "state": "READY"}]
    assert manager.ready_versions("m") == [1]


async def test_steps_of_a_load_and_of_an_unload_go_outside_in_and_back(
    folder, started, config, backend
):
    folder.model("m", config=config, text="2")
    manager = await started()

    await manager.load("m", {})
    await manager.unload("m")
    await manager.settled()

    assert backend.calls == [
        "open backend",
        "load m:1",
        "open m:1",
        "close m:1",
        "unload m:1",
        "close backend",
    ]


async def test_a_backend_is_opened_once_for_all_models(folder, started, config, backend):
    for name in ("a", "b", "c"):
        folder.model(name, config=config, text="1")

    manager = await started(load_model=["a", "b", "c"])
    await manager.unload("a")
    await manager.settled()

    assert backend.calls.count("open backend") == 1
    assert "close backend" not in backend.calls


async def test_load_of_an_unchanged_model_has_no_effect(folder, started, config, backend):
    folder.model("m", config=config, text="2")
    manager = await started(load_model=["m"])
    before = manager.resolve("m")

    await manager.load("m", {})

    assert manager.resolve("m") is before
    assert backend.calls.count("load m:1") == 1


async def test_load_of_a_changed_model_takes_the_new_files(folder, started, config):
    directory = folder.model("m", config=config, text="2")
    manager = await started(load_model=["m"])
    (directory / "1" / "model.txt").write_text("30")

    assert await manager.factor() == 2
    await manager.load("m", {})

    assert await manager.factor() == 30


async def test_blanks_around_the_name_do_not_count(folder, started, config):
    folder.model("m", config=config, text="2")
    manager = await started()

    await manager.load(" m ", {})

    assert await manager.factor() == 2


async def test_a_failed_load_gives_its_reason_to_the_caller_and_the_index(
    folder, started, config, refusal
):
    folder.model("m", config=config, text="fail: no weights")
    manager = await started()

    error = await refusal(manager.load("m", {}))

    [entry] = manager.index(False)
    reason = entry["reason"]
    assert re.fullmatch(
        r"Internal: backend 'test', load\(\) at \S+/conftest\.py:\d+: RuntimeError: fail: no weights",
        reason,
    )
    assert error.kind is Kind.INVALID
    assert error.message == (
        f"load failed for model 'm': version 1 is at UNAVAILABLE state: {reason};\n"
    )
    assert entry == {"name": "m", "version": "1", "state": "UNAVAILABLE", "reason": reason}
    assert not manager.all_ready()


async def test_a_model_that_ends_the_process_in_its_load_only_fails(
    folder, started, config, monkeypatch, backend, refusal
):
    def leave(self):
        raise SystemExit(3)

    monkeypatch.setattr(backend.model, "load", leave)
    folder.model("m", config=config)
    manager = await started()

    error = await refusal(manager.load("m", {}))

    assert "SystemExit: 3" in error.message


async def test_a_failed_open_of_an_instance_unloads_the_model(
    folder, started, config, backend, monkeypatch, refusal
):
    def fail(self):
        raise ValueError("no memory")

    monkeypatch.setattr(backend.instance, "open", fail)
    folder.model("m", config=config, text="1")
    manager = await started()

    error = await refusal(manager.load("m", {}))

    assert "ValueError: no memory" in error.message
    assert backend.calls == ["open backend", "load m:1", "unload m:1", "close backend"]


async def test_one_version_that_fails_keeps_the_others_from_serving(
    folder, started, config, refusal
):
    folder.model("m", config=config + "version_policy { all { } }", text="2")
    folder.version("m", 2, "fail: broken")
    manager = await started()

    error = await refusal(manager.load("m", {}))
    await manager.settled()

    assert "version 2 is at UNAVAILABLE state" in error.message
    assert "version 1 is at" not in error.message
    assert manager.entries("m") == {1: "UNAVAILABLE", 2: "UNAVAILABLE"}


async def test_an_unknown_model_is_refused_by_name_and_leaves_no_trace(started, refusal):
    manager = await started()

    error = await refusal(manager.load("absent", {}))

    assert error.kind is Kind.INTERNAL
    assert error.message.startswith(
        "failed to load 'absent', failed to poll from model repository: "
    )
    assert manager.index(False) == []
    assert manager.all_ready()


async def test_a_model_with_a_broken_config_has_the_reason_in_the_index(folder, started, refusal):
    folder.model("m", config="input [")
    manager = await started()

    error = await refusal(manager.load("m", {}))

    assert error.kind is Kind.INTERNAL
    entry, *_ = manager.index(False)
    assert entry["state"] == "UNAVAILABLE" and "config.pbtxt" in entry["reason"]
    assert not manager.all_ready()


async def test_a_model_without_a_version_is_refused(folder, started, config, refusal):
    folder.model("m", versions=(), config=config)
    manager = await started()

    error = await refusal(manager.load("m", {}))

    # A plugin may add what is wrong with the layout.
    assert error.message.startswith(
        "load failed for model 'm': at least one version must be available under the version "
        "policy of model 'm'"
    )


@pytest.mark.parametrize("name", ["", "..", "a/b"])
async def test_a_name_that_is_none_is_refused(started, name, refusal):
    manager = await started()

    assert (await refusal(manager.load(name, {}))).kind is Kind.INVALID


async def test_a_missing_backend_fails_the_model_with_its_text(started, folder, config, refusal):
    folder.model("m", config=config.replace("test", "absent"))
    manager = await started()

    assert "absent" in (await refusal(manager.load("m", {}))).message


@pytest.mark.parametrize("mode", ["none", "poll"])
async def test_other_modes_refuse_load_and_unload(started, mode, refusal):
    manager = await started(mode)
    expected = "explicit model load / unload is not allowed if polling is enabled"

    for call in (manager.load("m", {}), manager.unload("m")):
        error = await refusal(call)
        assert (error.kind, error.message) == (Kind.UNAVAILABLE, expected)


async def test_a_load_is_retried_as_often_as_the_options_allow(folder, started, config, backend):
    folder.model("m", config=config, text="fail twice")

    manager = await started(model_load_retry_count=2)
    await manager.load("m", {})

    assert backend.calls.count("load m:1") == 3


async def test_a_load_fails_when_every_try_failed(folder, started, config, backend, refusal):
    folder.model("m", config=config, text="fail always")

    manager = await started(model_load_retry_count=2)
    await refusal(manager.load("m", {}))

    assert backend.calls.count("load m:1") == 3


async def test_a_load_continues_when_the_client_disconnects(folder, started, config, backend):
    backend.gate = threading.Event()
    folder.model("m", config=config, text="2")
    manager = await started()
    client = asyncio.ensure_future(manager.load("m", {}))
    while "load m:1" not in backend.calls:
        await asyncio.sleep(0)

    client.cancel()
    await asyncio.gather(client, return_exceptions=True)
    backend.gate.set()
    await manager.load("m", {})

    assert await manager.factor() == 2
    assert backend.calls.count("load m:1") == 1
