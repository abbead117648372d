"""Which versions should run, and what leads there."""

from pathlib import Path

import pytest

from core.config import parse_text
from core.lifecycle.policy import Plan, plan, stale_versions, unchanged, wanted_versions
from core.repository import ModelDirectory, ModelSource


def config(policy="", rest=""):
    return parse_text(f'name: "m" backend: "test" {policy} {rest}', "test")


def source(versions=None, shared="s", config_stamp="c", text=None, path="/m", overridden=False):
    return ModelSource(
        name="m",
        directory=ModelDirectory(Path(path)),
        config=text or config(),
        versions=versions or {1: "one", 2: "two"},
        shared=shared,
        config_stamp=config_stamp,
        overridden=overridden,
    )


@pytest.mark.parametrize(
    ("policy", "wanted"),
    [
        ("", [10]),
        ("version_policy { latest { num_versions: 2 } }", [3, 10]),
        ("version_policy { latest { num_versions: 9 } }", [1, 2, 3, 10]),
        ("version_policy { latest { } }", [10]),
        ("version_policy { all { } }", [1, 2, 3, 10]),
        ("version_policy { specific { versions: [ 3, 1 ] } }", [1, 3]),
        ("version_policy { specific { versions: [ 4 ] } }", []),
    ],
)
def test_the_policy_chooses_among_the_versions_present(policy, wanted):
    assert wanted_versions(config(policy), [10, 1, 3, 2]) == wanted


def test_no_version_is_wanted_of_none():
    assert wanted_versions(config(), []) == []


def test_wanted_models_are_loaded_and_the_others_unloaded():
    states = {1: "READY", 2: "READY", 3: "UNAVAILABLE"}

    assert plan(states, [2, 3, 4]) == Plan(load=(3, 4), unload=(1,))


def test_a_stale_version_is_loaded_again_while_it_serves():
    assert plan({1: "READY"}, [1], stale=[1]) == Plan(load=(1,), unload=())


@pytest.mark.parametrize("state", ["LOADING", "UNLOADING", "UNAVAILABLE"])
def test_a_version_that_does_not_serve_is_loaded_and_never_unloaded(state):
    assert plan({1: state}, [1]) == Plan(load=(1,), unload=())
    assert plan({1: state}, []) == Plan(load=(), unload=())


def test_planning_again_after_a_plan_keeps_everything():
    done = plan({1: "READY", 2: "UNAVAILABLE"}, [2, 3])
    states = {version: "READY" for version in (*done.load, 2)}

    assert plan(states, [2, 3]) == Plan(load=(), unload=())


def test_no_version_is_stale_without_changes():
    assert stale_versions(source(), source()) == []
    assert unchanged(source(), source())


def test_without_a_former_source_everything_is_stale():
    assert stale_versions(None, source()) == [1, 2]


def test_only_a_version_with_changed_files_is_stale():
    new = source({1: "one", 2: "changed", 3: "three"})

    assert stale_versions(source(), new) == [2, 3]
    assert not unchanged(source(), new)


@pytest.mark.parametrize(
    "change",
    [
        {"shared": "changed"},
        {"path": "/elsewhere"},
        {"config_stamp": "changed", "text": config(rest="max_batch_size: 4")},
        {"overridden": True},
    ],
)
def test_a_change_that_all_versions_share_makes_all_stale(change):
    assert stale_versions(source(), source(**change)) == [1, 2]
    assert not unchanged(source(), source(**change))


def test_after_an_override_everything_on_disk_is_stale():
    assert stale_versions(source(overridden=True), source()) == [1, 2]


def test_a_touched_configuration_requires_another_load():
    assert stale_versions(source(), source(config_stamp="touched")) == [1, 2]


def test_another_version_policy_keeps_the_versions():
    new = source(config_stamp="changed", text=config("version_policy { all { } }"))

    assert stale_versions(source(), new) == []
    assert not unchanged(source(), new)
