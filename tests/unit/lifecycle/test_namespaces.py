"""--model-namespacing: models of one name in several repositories, as Triton 2.51 has them."""

import copy
import shutil

import pytest

from core.errors import CoreError, Kind
from core.repository.names import Key, key_of, name_of, namespace_of

from .test_ensembles import ensemble
from .test_override import as_json


@pytest.fixture
def repositories(folder, other, config):
    """m is in both: it doubles in the first and triples in the other. `only` is in the other one."""
    folder.model("m", config=config, text="2")
    folder.model("calls_m", config=ensemble("m"))
    folder.model("calls_only", config=ensemble("only"))
    other.model("m", config=config, text="3")
    other.model("calls_m_too", config=ensemble("m"))
    other.model("only", config=config, text="5")
    return [str(folder.path), str(other.path)]


@pytest.fixture
async def spaced(started, repositories):
    async def spaced(mode="none", **options):
        options.setdefault("model_repository", repositories)
        return await started(mode, model_namespacing=True, **options)

    return spaced


def entries(manager):
    """[(namespace's last folder, name, state)] of the index."""
    return [
        (each["namespace"].rpartition("/")[2], each["name"], each.get("state"))
        for each in manager.index(False)
    ]


async def told(manager, name="m"):
    with pytest.raises(CoreError) as error:
        await manager.ask(name)
    return error.value


async def test_a_name_in_several_repositories_is_several_models(spaced):
    manager = await spaced()

    assert entries(manager) == [
        ("models", "calls_m", "READY"),
        ("models", "calls_only", "READY"),
        ("models", "m", "READY"),
        ("other", "calls_m_too", "READY"),
        ("other", "m", "READY"),
        ("other", "only", "READY"),
    ]


async def test_steps_are_found_in_the_own_repository_first_then_anywhere(spaced):
    manager = await spaced()

    assert await manager.factor("calls_m") == 2
    assert await manager.factor("calls_m_too") == 3
    assert await manager.factor("calls_only") == 5


async def test_the_configuration_has_the_namespace_of_a_step(spaced, other):
    manager = await spaced()

    [step] = manager.resolve("calls_only").config.ensemble_scheduling.step

    assert (step.model_name, step.model_namespace) == ("only", str(other.path))


async def test_a_step_that_several_other_repositories_have_is_ambiguous(
    spaced, repositories, tmp_path, folder
):
    third = type(folder)(tmp_path / "third")
    third.model("calls_m_last", config=ensemble("m"))

    manager = await spaced(model_repository=[*repositories, str(third.path)], exit_on_error=False)

    [row] = [row for row in manager.table() if row[0].endswith("::calls_m_last")]
    assert "contains models that are not available or ambiguous" in row[2]
    assert "There are 2 identifiers" in (await told(manager)).message


async def test_a_name_that_is_one_model_is_enough_and_two_are_ambiguous(spaced):
    manager = await spaced()

    assert await manager.factor("only") == 5
    error = await told(manager)
    assert error.kind is Kind.INVALID
    assert error.message == (
        "There are 2 identifiers of model 'm' in global map, model namespace must be provided to resolve "
        "ambiguity."
    )
    assert (
        await told(manager, "nobody")
    ).message == "Request for unknown model: 'nobody' is not found"


async def test_a_namespace_before_the_name_resolves_the_ambiguity(spaced, folder, other):
    manager = await spaced()

    assert await manager.factor(f"{folder.path}::m") == 2
    assert await manager.factor(f"{other.path}::m") == 3
    assert manager.endpoints.find(f"{other.path}::m", 1).signature.name == "m"


async def test_the_table_shows_namespaces(spaced, folder):
    manager = await spaced()

    assert manager.table()[2] == (f"{folder.path}::m", "1", "READY")


async def test_a_load_by_name_is_for_the_models_of_all_repositories(spaced):
    manager = await spaced("explicit")

    await manager.load("m", {})

    assert [each for each in entries(manager) if each[2]] == [
        ("models", "m", "READY"),
        ("other", "m", "READY"),
    ]
    await manager.unload("m")
    assert all(state in ("UNLOADING", "UNAVAILABLE", None) for *_, state in entries(manager))


async def test_an_ensemble_brings_only_the_model_that_it_calls(spaced):
    manager = await spaced("explicit", load_model=["calls_m"])

    assert [each for each in entries(manager) if each[2]] == [
        ("models", "calls_m", "READY"),
        ("models", "m", "READY"),
    ]
    assert await manager.factor("m") == 2


async def test_unload_dependents_stays_in_its_namespace(spaced):
    manager = await spaced("explicit", load_model=["calls_m", "calls_m_too"])

    await manager.unload("calls_m", unload_dependents=True)
    await manager.settled()

    assert await manager.factor("m") == 3
    assert await manager.factor("calls_m_too") == 3


async def test_all_models_of_all_repositories_may_be_loaded_at_the_start(spaced):
    manager = await spaced("explicit", load_model=["*"])

    assert len(manager.index(True)) == 6


async def test_one_of_two_that_cannot_be_read_fails_the_load_and_the_other_serves(
    spaced, folder, refusal
):
    (folder.path / "m" / "config.pbtxt").write_text("input [")
    manager = await spaced("explicit")

    error = await refusal(manager.load("m", {}))

    assert error.message.startswith("failed to load 'm', failed to poll from model repository: ")
    assert ("other", "m", "READY") in entries(manager)


async def test_a_configuration_of_a_request_is_for_all_models_of_the_name(spaced, folder, other):
    manager = await spaced("explicit")

    await manager.load("m", {"config": as_json(parameters={"a": {"string_value": "b"}})})

    for place in (folder, other):
        found = manager.resolve(f"{place.path}::m").config
        assert found.parameters["a"].string_value == "b"


async def test_files_of_a_request_are_a_model_of_no_repository(spaced):
    manager = await spaced("explicit")
    await manager.load("only", {})

    await manager.load("only", {"config": as_json(), "file:1/model.txt": b"7"})

    assert "There are 2 identifiers of model 'only'" in (await told(manager, "only")).message
    assert await manager.factor("::only") == 7
    await manager.unload("only")
    await manager.settled()
    assert (await told(manager, "only")).kind is Kind.NOT_FOUND


async def test_an_ensemble_follows_its_step_to_another_repository_and_back(
    repositories, folder, other, manage, ticker, config
):
    manager = manage("poll", model_repository=repositories, model_namespacing=True)
    await manager.start()

    shutil.move(folder.path / "m", folder.path.parent / "away")
    await ticker.tick()
    await manager.settled()
    assert await manager.factor("calls_m") == 3
    assert await manager.factor("m") == 3
    shutil.move(folder.path.parent / "away", folder.path / "m")
    await ticker.tick()

    assert await manager.factor("calls_m") == 2
    assert (await told(manager)).kind is Kind.INVALID


async def test_the_same_name_and_files_are_not_the_same_content(spaced, folder, other):
    shutil.copy2(folder.path / "m/1/model.txt", other.path / "m/1/model.txt")
    shutil.copy2(folder.path / "m/config.pbtxt", other.path / "m/config.pbtxt")
    manager = await spaced()

    contents = {manager.content(f"{place.path}::m") for place in (folder, other)}

    assert len(contents) == 2


async def test_without_namespaces_a_namespace_in_a_configuration_has_no_effect(
    folder, started, config
):
    folder.model("m", config=config, text="2")
    text = ensemble("m").replace("model_version", 'model_namespace: "/nowhere" model_version')
    folder.model("e", config=text)

    manager = await started("none")

    assert await manager.factor("e") == 2
    assert manager.resolve("e").config.ensemble_scheduling.step[0].model_namespace == ""
    assert all("namespace" not in each for each in manager.index(False))


def test_a_key_has_its_parts_and_equals_its_text():
    key = copy.copy(Key("/a::b", "c::d"))

    assert (key, key.namespace, key.name) == ("/a::b::c::d", "/a::b", "c::d")
    assert (name_of(key), namespace_of(key)) == ("c::d", "/a::b")
    assert (name_of("m"), namespace_of("m"), key_of(None, "m")) == ("m", None, "m")


async def test_a_front_answers_for_the_name_without_a_namespace_too(spaced):
    manager = await spaced()
    key = next(each.key for each in manager.versions() if each.name == "only")
    front = manager.endpoints.find("calls_m", 1)
    manager.endpoints.front = lambda name, endpoints: front
    manager.endpoints.renew(key)

    assert [manager.endpoints.find(name, -1) for name in (key, "only")] == [front, front]
    assert manager.endpoints.find("only", 1) is manager.endpoints.find(key, 1) is not front
