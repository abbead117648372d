"""A repository in each of the clouds behaves like a folder."""

import hashlib

import pytest

from core.errors import CoreError

from .emulators import S3

# Behaviour that is equal for all stores is tested with one.
once = pytest.mark.parametrize("emulator", [S3], ids=["s3"], indirect=True)

_TENSORS = """
input [ { name: "x" data_type: TYPE_FP32 dims: [ -1 ] } ]
output [ { name: "y" data_type: TYPE_FP32 dims: [ -1 ] } ]
"""


def states(server, name="m"):
    """Return version → state of one model in the server's index."""
    found = [each for each in server.manager.index() if each["name"] == name]
    return {int(each["version"]): each["state"] for each in found if "version" in each}


async def test_a_model_is_loaded_with_the_files_of_its_version_alone(shelf, serve, factor, backend):
    for version in (1, 2, 10):
        shelf.model("m", str(version), version=version)
    shelf.put("m/labels/deep/er.txt", "a label")

    server = await serve()

    assert await factor(server) == 10
    assert states(server) == {10: "READY"}
    assert backend.files == [["10/factor.txt", "config.pbtxt", "labels/deep/er.txt"]]
    assert shelf.fetched() == ["m/10/factor.txt", "m/config.pbtxt", "m/labels/deep/er.txt"]


async def test_a_poll_without_changes_lists_and_fetches_no_file(shelf, serve):
    shelf.model("m", "3")
    server = await serve(model_control_mode="poll")
    shelf.fetched()

    await server.manager.poll()

    assert len(shelf.emulator.recorder.requests) in (1, 2, 3)
    assert shelf.fetched() == []


async def test_a_poll_fetches_only_changed_files(shelf, serve, factor, backend):
    shelf.model("m", "3")
    shelf.put("m/1/weights.bin", "many numbers")
    server = await serve(model_control_mode="poll")
    shelf.fetched()
    shelf.put("m/1/factor.txt", "30")

    await server.manager.poll()

    assert await factor(server) == 30
    assert shelf.fetched() == ["m/1/factor.txt"]
    assert backend.files[-1] == ["1/factor.txt", "1/weights.bin", "config.pbtxt"]


@once
async def test_a_new_version_is_fetched_alone(shelf, serve, factor):
    policy = "version_policy { all { } }"
    shelf.model("m", "3")
    shelf.put("m/config.pbtxt", f'backend: "scaler" {policy} {_TENSORS}')
    server = await serve(model_control_mode="poll")
    shelf.fetched()
    shelf.put("m/2/factor.txt", "30")

    await server.manager.poll()

    assert states(server) == {1: "READY", 2: "READY"}
    assert await factor(server) == 30
    assert shelf.fetched() == ["m/2/factor.txt"]


async def test_models_that_come_are_loaded_and_models_that_go_are_unloaded(shelf, serve, factor):
    shelf.model("m", "3")
    server = await serve(model_control_mode="poll")
    shelf.model("n", "5")
    for path in ("m/config.pbtxt", "m/1/factor.txt"):
        shelf.delete(path)

    await server.manager.poll()

    assert await factor(server, "n") == 5
    with pytest.raises(CoreError):
        await factor(server, "m")


@once
async def test_a_repository_that_is_emptied_serves_nothing(shelf, serve, factor):
    shelf.model("m", "3")
    server = await serve(model_control_mode="poll")
    for path in ("m/config.pbtxt", "m/1/factor.txt"):
        shelf.delete(path)

    await server.manager.poll()

    assert [each for each in server.manager.index() if each.get("state") == "READY"] == []


@once
async def test_a_model_that_arrives_in_parts_is_loaded_when_it_is_whole(shelf, serve, factor):
    shelf.put("m/config.pbtxt", f'backend: "scaler" {_TENSORS}')
    shelf.put("m/1/weights.bin", "many numbers")
    server = await serve(model_control_mode="poll")
    assert states(server) == {1: "UNAVAILABLE"}
    shelf.put("m/1/factor.txt", "3")

    await server.manager.poll()

    assert await factor(server) == 3


@once
async def test_load_requests_reload_changed_models_and_unload(shelf, serve, factor):
    shelf.model("other", "1")
    server = await serve(model_control_mode="explicit")
    shelf.model("m", "3")
    await server.models.load("m")
    assert await factor(server) == 3
    shelf.put("m/1/factor.txt", "30")
    shelf.fetched()

    await server.models.load("m")

    assert await factor(server) == 30
    assert shelf.fetched() == ["m/1/factor.txt"]
    await server.models.unload("m")
    with pytest.raises(CoreError):
        await factor(server)


@once
async def test_the_index_shows_models_that_have_come_since(shelf, serve):
    shelf.model("m", "3")
    server = await serve(model_control_mode="explicit")
    shelf.model("n", "5")

    await server.manager.look()

    assert [each["name"] for each in server.manager.index()] == ["m", "n"]


@once
async def test_a_load_may_bring_its_own_configuration(shelf, serve, factor):
    shelf.model("m", "3")
    shelf.model("m", "5", version=2)
    server = await serve(model_control_mode="explicit")
    config = """{"backend": "scaler", "version_policy": {"specific": {"versions": [1]}},
        "input": [{"name": "x", "data_type": "TYPE_FP32", "dims": [-1]}],
        "output": [{"name": "y", "data_type": "TYPE_FP32", "dims": [-1]}]}"""

    await server.models.load("m", {"config": config})

    assert await factor(server) == 3
    assert "m/2/factor.txt" not in shelf.fetched()


@once
async def test_the_configuration_of_that_name_is_taken(shelf, serve):
    shelf.model("m", "3")
    tagged = f'backend: "scaler" metric_tags {{ key: "size" value: "large" }} {_TENSORS}'
    shelf.put("m/configs/large.pbtxt", tagged)

    server = await serve(model_config_name="large")

    assert server.models.config("m").metric_tags["size"] == "large"


@once
async def test_folders_and_clouds_are_served_together(shelf, serve, factor, tmp_path):
    shelf.model("m", "3")
    (tmp_path / "folder" / "n" / "1").mkdir(parents=True)
    (tmp_path / "folder" / "n" / "config.pbtxt").write_text(f'backend: "scaler" {_TENSORS}')
    (tmp_path / "folder" / "n" / "1" / "factor.txt").write_text("5")

    server = await serve(model_repository=[shelf.url, str(tmp_path / "folder")])

    assert [await factor(server, name) for name in "mn"] == [3, 5]


@once
@pytest.mark.parametrize("right", [True, False])
async def test_agents_see_the_fetched_files(shelf, serve, factor, right):
    digest = hashlib.md5(b"3" if right else b"4").hexdigest()
    agent = f'agents [ {{ name: "checksum" parameters {{ key: "MD5:1/factor.txt" value: "{digest}" }} }} ]'
    shelf.model(
        "m", "3", config=f'backend: "scaler" model_repository_agents {{ {agent} }} {_TENSORS}'
    )

    server = await serve()

    if right:
        assert await factor(server) == 3
    else:
        with pytest.raises(CoreError):
            await factor(server)
