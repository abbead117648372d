"""Explicit load and unload: what they do, what they answer, what the index says."""

import asyncio
import gc
import json
import threading
import weakref

import pytest

from core.errors import CoreError, Kind

ENSEMBLE = """
platform: "ensemble"
input [ {{ name: "x" data_type: TYPE_FP32 dims: [ -1 ] }} ]
output [ {{ name: "y" data_type: TYPE_FP32 dims: [ -1 ] }} ]
ensemble_scheduling {{ {steps} }}
"""


def ensemble(*models):
    """A config that sends x through each model in turn."""
    names = ["x", *(f"t{i}" for i in range(1, len(models))), "y"]
    return ENSEMBLE.format(
        steps="".join(
            f'step {{ model_name: "{model}" model_version: -1 '
            f'input_map {{ key: "x" value: "{names[i]}" }} '
            f'output_map {{ key: "y" value: "{names[i + 1]}" }} }}'
            for i, model in enumerate(models)
        )
    )


async def refusal(awaitable):
    with pytest.raises(CoreError) as error:
        await awaitable
    return error.value


@pytest.fixture
async def started(manage):
    async def start(mode="explicit", **options):
        manager = manage(mode, **options)
        await manager.start()
        return manager

    return start


# load ----------------------------------------------------------------------------


async def test_nothing_is_loaded_at_the_start_of_explicit_mode(folder, started, config):
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

    assert backend.diary == [
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

    assert backend.diary.count("open backend") == 1
    assert "close backend" not in backend.diary


async def test_load_of_an_unchanged_model_does_nothing(folder, started, config, backend):
    folder.model("m", config=config, text="2")
    manager = await started(load_model=["m"])
    before = manager.resolve("m")

    await manager.load("m", {})

    assert manager.resolve("m") is before
    assert backend.diary.count("load m:1") == 1


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


async def test_a_failed_load_gives_its_reason_to_the_caller_and_the_index(folder, started, config):
    folder.model("m", config=config, text="fail: no weights")
    manager = await started()

    error = await refusal(manager.load("m", {}))

    reason = "Internal: RuntimeError: fail: no weights"
    assert error.kind is Kind.INVALID
    assert error.message == (
        f"load failed for model 'm': version 1 is at UNAVAILABLE state: {reason};\n"
    )
    assert manager.index(False) == [
        {"name": "m", "version": "1", "state": "UNAVAILABLE", "reason": reason}
    ]
    assert not manager.all_ready()


async def test_a_model_that_ends_the_process_in_its_load_only_fails(
    folder, started, config, monkeypatch, backend
):
    def leave(self):
        raise SystemExit(3)

    monkeypatch.setattr(backend.model, "load", leave)
    folder.model("m", config=config)
    manager = await started()

    error = await refusal(manager.load("m", {}))

    assert "SystemExit: 3" in error.message


async def test_a_failed_open_of_an_instance_unloads_the_model(
    folder, started, config, backend, monkeypatch
):
    def fail(self):
        raise ValueError("no memory")

    monkeypatch.setattr(backend.instance, "open", fail)
    folder.model("m", config=config, text="1")
    manager = await started()

    error = await refusal(manager.load("m", {}))

    assert "ValueError: no memory" in error.message
    assert backend.diary == ["open backend", "load m:1", "unload m:1", "close backend"]


async def test_one_version_that_fails_keeps_the_others_from_serving(folder, started, config):
    folder.model("m", config=config + "version_policy { all { } }", text="2")
    folder.version("m", 2, "fail: broken")
    manager = await started()

    error = await refusal(manager.load("m", {}))
    await manager.settled()

    assert "version 2 is at UNAVAILABLE state" in error.message
    assert "version 1 is at" not in error.message
    assert manager.entries("m") == {1: "UNAVAILABLE", 2: "UNAVAILABLE"}


async def test_an_unknown_model_is_refused_by_name_and_leaves_no_trace(started):
    manager = await started()

    error = await refusal(manager.load("absent", {}))

    assert error.kind is Kind.INTERNAL
    assert error.message.startswith(
        "failed to load 'absent', failed to poll from model repository: "
    )
    assert manager.index(False) == []
    assert manager.all_ready()


async def test_a_model_whose_config_is_broken_says_so_in_the_index(folder, started):
    folder.model("m", config="input [")
    manager = await started()

    error = await refusal(manager.load("m", {}))

    assert error.kind is Kind.INTERNAL
    entry, *_ = manager.index(False)
    assert entry["state"] == "UNAVAILABLE" and "config.pbtxt" in entry["reason"]
    assert not manager.all_ready()


async def test_a_model_without_a_version_is_refused(folder, started, config):
    folder.model("m", versions=(), config=config)
    manager = await started()

    error = await refusal(manager.load("m", {}))

    assert error.message == (
        "load failed for model 'm': at least one version must be available under the version "
        "policy of model 'm'\n"
    )


@pytest.mark.parametrize("name", ["", "..", "a/b"])
async def test_a_name_that_is_none_is_refused(started, name):
    manager = await started()

    assert (await refusal(manager.load(name, {}))).kind is Kind.INVALID


async def test_a_missing_backend_fails_the_model_with_its_text(started, folder, config):
    folder.model("m", config=config.replace("test", "absent"))
    manager = await started()

    assert "absent" in (await refusal(manager.load("m", {}))).message


@pytest.mark.parametrize("mode", ["none", "poll"])
async def test_other_modes_refuse_load_and_unload(started, mode):
    manager = await started(mode)
    expected = "explicit model load / unload is not allowed if polling is enabled"

    for call in (manager.load("m", {}), manager.unload("m")):
        error = await refusal(call)
        assert (error.kind, error.message) == (Kind.UNAVAILABLE, expected)


async def test_a_load_is_tried_again_as_often_as_the_options_say(folder, started, config, backend):
    folder.model("m", config=config, text="fail twice")

    manager = await started(model_load_retry_count=2)
    await manager.load("m", {})

    assert backend.diary.count("load m:1") == 3


async def test_a_load_fails_when_every_try_failed(folder, started, config, backend):
    folder.model("m", config=config, text="fail always")

    manager = await started(model_load_retry_count=2)
    await refusal(manager.load("m", {}))

    assert backend.diary.count("load m:1") == 3


async def test_a_load_goes_on_when_the_client_goes_away(folder, started, config, backend):
    backend.gate = threading.Event()
    folder.model("m", config=config, text="2")
    manager = await started()
    client = asyncio.ensure_future(manager.load("m", {}))
    while "load m:1" not in backend.diary:
        await asyncio.sleep(0)

    client.cancel()
    await asyncio.gather(client, return_exceptions=True)
    backend.gate.set()
    await manager.load("m", {})

    assert await manager.factor() == 2
    assert backend.diary.count("load m:1") == 1


# override ------------------------------------------------------------------------


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

    assert backend.diary.count("load m:1") == 2


async def test_a_wrong_override_keeps_what_serves(folder, started, config):
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


async def test_files_of_a_request_that_fails_are_removed(started, tmp_path, monkeypatch):
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    manager = await started()
    before = set(tmp_path.iterdir())

    await refusal(manager.load("new", {"config": as_json(), "file:1/model.txt": b"fail"}))

    assert set(tmp_path.iterdir()) == before
    assert manager.index(False) == []


# unload --------------------------------------------------------------------------


async def test_an_unloaded_model_is_unavailable_with_the_reason_unloaded(folder, started, config):
    folder.model("m", config=config, text="2")
    manager = await started(load_model=["m"])

    await manager.unload("m")
    await manager.settled()

    assert manager.index(False) == [
        {"name": "m", "version": "1", "state": "UNAVAILABLE", "reason": "unloaded"}
    ]
    assert manager.all_ready()


async def test_unload_answers_while_the_last_request_still_runs(folder, started, config, backend):
    folder.model("m", config=config, text="2")
    manager = await started(load_model=["m"])
    backend.go.clear()
    reply = manager.ask()

    await manager.unload("m")

    assert manager.entries("m") == {1: "UNLOADING"}
    assert "unload m:1" not in backend.diary
    backend.go.set()
    assert (await reply).output("y").array[0] == 2
    await manager.settled()
    assert manager.entries("m") == {1: "UNAVAILABLE"}


async def test_a_model_can_be_loaded_again_while_it_still_drains(folder, started, config, backend):
    folder.model("m", config=config, text="2")
    manager = await started(load_model=["m"])
    backend.go.clear()
    reply = manager.ask()
    await manager.unload("m")

    await manager.load("m", {})

    assert manager.entries("m") == {1: "READY"}
    backend.go.set()
    assert (await reply).output("y").array[0] == 2
    await manager.settled()
    assert await manager.factor() == 2


async def test_an_unload_that_raises_ends_all_the_same(folder, started, config, backend):
    folder.model("m", config=config, text="close: stuck")
    manager = await started(load_model=["m"])

    await manager.unload("m")
    await manager.settled()

    assert manager.entries("m") == {1: "UNAVAILABLE"}
    assert backend.diary[-1] == "close backend"


async def test_unload_of_what_nobody_knows_succeeds(folder, started, config):
    folder.model("m", config=config)
    manager = await started()

    await manager.unload("absent")
    await manager.unload("m")
    await manager.unload("../m")

    assert manager.index(False) == [{"name": "m"}]


async def test_unload_of_a_failed_model_makes_the_server_ready_again(folder, started, config):
    folder.model("m", config=config, text="fail")
    folder.model("broken", config="{")
    manager = await started()
    await refusal(manager.load("m", {}))
    await refusal(manager.load("broken", {}))
    assert not manager.all_ready()

    await manager.unload("m")
    await manager.unload("broken")

    assert manager.reason("m") == "unloaded"
    assert manager.all_ready()


# resolve -------------------------------------------------------------------------


@pytest.fixture
async def versioned(folder, started, config):
    folder.model("m", (1, 2), config + "version_policy { all { } }", "2")
    folder.version("m", 10, "10")
    folder.model("unloaded", config=config, text="1")
    manager = await started(load_model=["m", "unloaded"])
    await manager.unload("unloaded")
    return manager


def not_resolved(manager, *args):
    with pytest.raises(CoreError) as error:
        manager.resolve(*args)
    return error.value.kind, error.value.message


async def test_without_a_version_the_highest_number_answers(versioned):
    assert versioned.resolve("m").version == 10
    assert await versioned.factor("m", 2) == 2
    assert versioned.ready_versions("m") == [1, 2, 10]


async def test_an_unknown_model_is_not_found(versioned):
    expected = Kind.NOT_FOUND, "Request for unknown model: 'absent' is not found"
    assert not_resolved(versioned, "absent") == expected
    assert not_resolved(versioned, "absent", 3) == expected


async def test_an_unknown_version_is_not_found(versioned):
    expected = Kind.NOT_FOUND, "Request for unknown model: 'm' version 9 is not found"
    assert not_resolved(versioned, "m", 9) == expected


async def test_an_unloaded_model_has_no_available_versions(versioned):
    expected = (
        Kind.NOT_FOUND,
        "Request for unknown model: 'unloaded' has no available versions",
    )
    assert not_resolved(versioned, "unloaded") == expected


async def test_an_unloaded_version_is_not_at_ready_state(versioned):
    expected = (
        Kind.UNAVAILABLE,
        "Request for unknown model: 'unloaded' version 1 is not at ready state",
    )
    assert not_resolved(versioned, "unloaded", 1) == expected


async def test_versions_are_listed_by_name_and_number(versioned):
    found = [(each.name, each.version) for each in versioned.versions()]

    assert found == [("m", 1), ("m", 2), ("m", 10), ("unloaded", 1)]


# ensembles -----------------------------------------------------------------------


@pytest.fixture
async def composed(folder, started, config):
    """double and triple; six = double, triple; twelve = six, double."""
    folder.model("double", config=config, text="2")
    folder.model("triple", config=config, text="3")
    folder.model("six", config=ensemble("double", "triple"))
    folder.model("twelve", config=ensemble("six", "double"))
    return await started()


async def test_an_ensemble_brings_the_models_that_it_is_composed_of(composed):
    await composed.load("twelve", {})

    assert {entry["name"] for entry in composed.index(True)} == {
        "double",
        "triple",
        "six",
        "twelve",
    }
    assert await composed.factor("twelve") == 12


async def test_an_ensemble_does_not_take_its_models_along(composed):
    await composed.load("six", {})

    await composed.unload("six")

    assert composed.ready_versions("double") == [1]


async def test_unload_dependents_takes_along_what_nobody_else_wants(composed):
    await composed.load("twelve", {})
    await composed.load("triple", {})

    await composed.unload("twelve", True)

    assert {entry["name"] for entry in composed.index(True)} == {"triple"}


async def test_unload_dependents_leaves_what_another_ensemble_needs(composed):
    await composed.load("six", {})
    await composed.load("twelve", {})

    await composed.unload("twelve", True)

    assert await composed.factor("six") == 6


async def test_an_ensemble_goes_and_comes_back_with_a_model_that_it_needs(composed):
    await composed.load("six", {})

    await composed.unload("triple")
    assert composed.ready_versions("six") == []
    await composed.load("triple", {})

    assert await composed.factor("six") == 6


async def test_an_unloaded_ensemble_does_not_come_back(composed):
    await composed.load("six", {})
    await composed.unload("six")

    await composed.unload("triple")
    await composed.load("triple", {})

    assert composed.ready_versions("six") == []


async def test_a_request_in_an_ensemble_ends_before_its_models_go(composed, backend):
    await composed.load("six", {})
    backend.go.clear()
    reply = composed.ask("six")

    unload = asyncio.ensure_future(composed.unload("six", True))
    await asyncio.sleep(0)
    backend.go.set()
    await unload

    assert (await reply).output("y").array[0] == 6


async def test_an_ensemble_without_one_of_its_models_says_which(folder, composed):
    folder.model("eight", config=ensemble("double", "four"))

    error = await refusal(composed.load("eight", {}))

    assert "contains models that are not available or ambiguous: 'four'" in error.message
    assert composed.ready_versions("double") == [1]


async def test_an_ensemble_whose_model_fails_says_why(folder, composed, config):
    folder.model("four", config=config, text="fail: no weights")
    folder.model("eight", config=ensemble("double", "four"))

    error = await refusal(composed.load("eight", {}))

    assert "load failed for model 'eight'" in error.message
    assert "load failed for model 'four'" in error.message and "no weights" in error.message


async def test_an_ensemble_of_itself_is_refused(folder, composed):
    folder.model("a", config=ensemble("b"))
    folder.model("b", config=ensemble("a"))

    error = await refusal(composed.load("a", {}))

    assert "load failed for model 'a': circular dependency between ensembles: a -> b -> a" in (
        error.message
    )


async def test_a_step_with_a_wrong_tensor_is_refused_with_the_names_there_are(folder, composed):
    folder.model("wrong", config=ensemble("double").replace('key: "x"', 'key: "z"'))

    error = await refusal(composed.load("wrong", {}))

    assert "has no input 'z'; it has x" in error.message


async def test_an_unloaded_model_holds_no_memory(folder, started, config, backend, monkeypatch):
    models = weakref.WeakSet()
    load = backend.model.load

    def remember(self):
        models.add(self)
        load(self)

    monkeypatch.setattr(backend.model, "load", remember)
    folder.model("m", config=config, text="2")
    manager = await started(load_model=["m"])
    await manager.factor()
    assert len(models) == 1

    await manager.unload("m")
    await manager.settled()
    gc.collect()

    assert not models


async def test_an_ensemble_with_a_decoupled_step_is_decoupled(folder, started, config):
    decoupled = "model_transaction_policy { decoupled: true }"
    folder.model("many", config=config + decoupled, text="2")
    folder.model("outer", config=ensemble("many"))
    manager = await started()

    await manager.load("outer", {})

    found = manager.resolve("outer")
    assert found.signature.decoupled
    assert found.config.model_transaction_policy.decoupled


async def test_a_model_that_an_ensemble_still_drains_through_goes_after_it(composed, backend):
    await composed.load("six", {})
    backend.go.clear()
    reply = composed.ask("six")
    await composed.unload("six")

    unload = asyncio.ensure_future(composed.unload("triple"))
    await asyncio.sleep(0)
    backend.go.set()
    await unload

    assert (await reply).output("y").array[0] == 6


async def test_an_ensemble_that_is_loaded_while_its_model_goes_is_not_left_without_it(composed):
    await composed.load("six", {})
    await composed.unload("six")

    await asyncio.gather(composed.load("six", {}), composed.unload("triple"))

    assert composed.ready_versions("six") == [] or composed.ready_versions("triple") == [1]
