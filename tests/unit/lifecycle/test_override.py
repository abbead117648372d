"""Loads that bring their configuration, or their files."""

import json

from core.errors import Kind


def as_json(**changes):
    tensor = {"data_type": "TYPE_FP32", "dims": [-1]}
    config = {"backend": "test", "input": [{"name": "x", **tensor}]}
    return json.dumps({**config, "output": [{"name": "y", **tensor}], **changes})


async def test_an_override_reloads_and_the_next_plain_load_goes_back(folder, started, config):
    folder.model("m", config=config + 'parameters { key: "a" value: { string_value: "disk" } }')
    folder.path.joinpath("m/1/model.txt").write_text("2")
    manager = await started()
    parameters = {"parameters": {"a": {"string_value": "request"}}}

    def parameter():
        return manager.resolve("m").config.parameters["a"].string_value

    await manager.load("m", {"config": as_json(**parameters)})
    assert parameter() == "request"
    await manager.load("m", {})
    assert parameter() == "disk"
    await manager.load("m", {})
    assert parameter() == "disk"


async def test_the_same_override_twice_loads_twice(folder, started, config, backend):
    folder.model("m", config=config, text="2")
    manager = await started()

    await manager.load("m", {"config": as_json()})
    await manager.load("m", {"config": as_json()})

    assert backend.calls.count("load m:1") == 2


async def test_a_wrong_override_keeps_the_serving_version(folder, started, config, refusal):
    folder.model("m", config=config, text="2")
    manager = await started(load_model=["m"])

    error = await refusal(manager.load("m", {"config": "{"}))

    assert error.kind is Kind.INVALID
    assert error.message.startswith("Invalid config override: ")
    assert await manager.factor() == 2


async def test_files_of_a_request_are_a_model_until_it_is_unloaded(started):
    manager = await started()

    await manager.load("new", {"config": as_json(), "file:5/model.txt": b"7"})
    directory = manager.resolve("new").directory
    assert await manager.factor("new") == 7
    assert manager.entries("new") == {5: "READY"}
    assert directory.is_dir()
    await manager.unload("new")
    await manager.settled()

    assert not directory.exists()
    assert manager.index(False) == []


async def test_files_of_a_request_stay_as_long_as_a_request_runs(started, backend):
    manager = await started()
    await manager.load("new", {"config": as_json(), "file:1/model.txt": b"7"})
    directory = manager.resolve("new").directory
    backend.go.clear()
    reply = manager.ask("new")

    await manager.load("new", {"config": as_json(), "file:1/model.txt": b"8"})
    assert directory.is_dir()
    backend.go.set()
    await reply
    await manager.settled()

    assert not directory.exists()
    assert await manager.factor("new") == 8


async def test_files_of_a_request_that_fails_are_removed(started, tmp_path, monkeypatch, refusal):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    manager = await started()
    before = set(tmp_path.iterdir())

    await refusal(manager.load("new", {"config": as_json(), "file:1/model.txt": b"fail"}))

    assert set(tmp_path.iterdir()) == before
    assert manager.index(False) == []
