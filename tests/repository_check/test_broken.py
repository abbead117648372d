"""Each fault is found in its place, and a server refuses the same models."""

import argparse
import contextlib
import io
import json

import pytest
from repository_check.broken_models import BROKEN, onnx_model, write

import core
from frontends.commands.check import command

REFUSED = sorted(name for name, each in BROKEN.items() if each.refused)
SERVED = sorted(name for name, each in BROKEN.items() if not each.refused)


@pytest.fixture(scope="module")
def repository(tmp_path_factory):
    """A repository with all broken models, and one that is right."""
    root = tmp_path_factory.mktemp("broken")
    for name, broken in BROKEN.items():
        write(root / name, broken.files)
    write(root / "good", onnx_model())
    return root


@pytest.fixture(scope="module")
def checked(repository):
    parser = argparse.ArgumentParser()
    command.arguments(parser)
    with contextlib.redirect_stdout(io.StringIO()) as out:
        command.run(parser.parse_args([str(repository), "--format", "json", "--gpus", "0"]))
    return {each["name"]: each["findings"] for each in json.loads(out.getvalue())["models"]}


@pytest.fixture(scope="module")
def states(repository):
    """Return name → reason of each model that a server refuses, "" for the others."""
    with core.Server(model_repository=str(repository), exit_on_error=False) as server:
        index = server.index()
    found = {}
    for each in index:
        name, state = each["name"], each.get("state", "")
        found[name] = found.get(name, "") or ("" if state == "READY" else each.get("reason", "?"))
    return found


@pytest.mark.parametrize("name", sorted(BROKEN))
def test_a_fault_is_found_in_its_place(name, checked):
    broken = BROKEN[name]

    same = [
        each
        for each in checked[name]
        if each["rule"] == broken.rule and broken.text in each["text"]
    ]

    assert same, checked[name]
    assert same[0]["level"] == ("error" if broken.refused else "warning")
    if broken.at is not None:
        assert same[0]["file"].endswith("config.pbtxt")
        assert (same[0]["line"], same[0]["column"]) == broken.at
    elif same[0]["file"].endswith("config.pbtxt"):
        assert same[0]["line"] >= 1


@pytest.mark.parametrize("name", REFUSED)
def test_a_server_refuses_what_the_check_calls_an_error(name, states):
    assert states[name], f"a server serves '{name}'"


@pytest.mark.parametrize("name", [*SERVED, "good"])
def test_a_server_serves_what_the_check_does_not_call_an_error(name, checked, states):
    assert states[name] == ""
    assert not [each for each in checked[name] if each["level"] == "error"]


def test_there_are_fifty_faults_and_more():
    assert len(BROKEN) >= 50
