"""Which version a name and a number mean."""

import pytest

from core.errors import CoreError, Kind


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


async def test_an_unknown_model_gets_the_nearest_one_that_serves(versioned):
    assert not_resolved(versioned, "M") == (
        Kind.NOT_FOUND,
        "Request for unknown model: 'M' is not found; did you mean 'm'?",
    )
    assert not_resolved(versioned, "unloade") == (
        Kind.NOT_FOUND,
        "Request for unknown model: 'unloade' is not found",
    )
