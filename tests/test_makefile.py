"""Every target of the Makefile runs on a fresh clone: its prerequisites exist or are made."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]
# Without what `make test` hands to the tests that it runs, and without another Python.
HANDED = ("ARGS", "MAKE", "MFLAGS", "PYTHON")
ENVIRONMENT = {k: v for k, v in os.environ.items() if not k.startswith(HANDED)}
VERBS = re.findall(r"^([\w-]+):.*## ", (ROOT / "Makefile").read_text(), re.M)


STAMP = ".venv-formats/.test"

needs_make = pytest.mark.skipif(shutil.which("make") is None, reason="make is not installed")


@needs_make
@pytest.mark.parametrize("verb", VERBS)
def test_a_verb_finds_all_that_it_is_made_of(verb):
    # --always-make: as on a clone on which nothing has been made yet.
    run = ["make", "--dry-run", "--always-make", verb, "NAME=x"]

    plan = subprocess.run(
        run, cwd=ROOT, env=ENVIRONMENT, capture_output=True, text=True, timeout=60
    )

    assert plan.returncode == 0, plan.stderr


def test_a_file_named_as_a_verb_does_not_stop_it():
    phony = re.search(r"^\.PHONY: (.*)$", (ROOT / "Makefile").read_text(), re.M)

    assert phony and set(VERBS) <= set(phony[1].split())


def planned(verb):
    """Return the commands of a verb on a fresh clone."""
    run = ["make", "--dry-run", "--always-make", verb]
    return subprocess.run(
        run, cwd=ROOT, env=ENVIRONMENT, capture_output=True, text=True, check=True
    ).stdout


@needs_make
def test_serve_installs_what_the_example_models_need_and_trains_nothing():
    plan = planned("serve")

    assert "--group" not in plan and "make_models" not in plan
    installed = set(re.findall(r"\b(?:backends|plugins|clients)/\w+", plan))
    assert installed == {"backends/fil", "backends/onnx", "backends/python", "plugins/adapters"}


@needs_make
@pytest.mark.parametrize("verb", ["wheels", "sdists"])
def test_wheels_need_the_tools_that_build_and_nothing_else(verb):
    plan = planned(verb).splitlines()

    assert plan == [
        "PYTHON=python3 .ci/install .venv",
        "touch .venv/.tools",
        f".ci/wheels .venv/bin {verb} ",
    ]


@needs_make
def test_a_framework_whose_tests_fail_keeps_none_of_the_others_from_its_tests(tmp_path):
    program = tmp_path / ".venv-formats" / "bin" / "python"
    program.parent.mkdir(parents=True)
    program.write_text('#!/bin/sh\necho "$@"\ncase "$*" in *backends/tvm*) exit 3; esac\n')
    program.chmod(0o755)
    (tmp_path / ".ci").mkdir()
    # What has been made is newer than all that it is made of.
    run = ["make", f"--makefile={ROOT / 'Makefile'}", f"--assume-old={STAMP}", "test-formats"]
    (tmp_path / STAMP).touch()

    done = subprocess.run(run, cwd=tmp_path, env=ENVIRONMENT, capture_output=True, text=True)

    assert re.findall(r"^-m pytest .* (backends/\w+) *$", done.stdout, re.M) == [
        "backends/paddle",
        "backends/tvm",
        "backends/dali",
    ]
    assert "Error 3" in done.stderr


@needs_make
def test_no_verb_installs_a_distribution_twice():
    plan = planned("test")

    installed = re.findall(r" ((?:backends|plugins|clients)/\w+|\.)(?= |$)", plan, re.M)
    assert sorted(set(installed)) == sorted(installed)


def test_the_readme_begins_with_verbs_that_there_are():
    said = re.findall(r"^\$ make ([\w-]+)", (ROOT / "README.md").read_text(), re.M)

    assert said and set(said) <= set(VERBS)


def test_what_is_installed_beside_the_compilation_is_what_comes_from_an_index():
    folders = [".", "backends/onnx", "plugins/adapters"]

    found = subprocess.check_output(
        [sys.executable, ROOT / ".ci" / "libraries.py", *folders], text=True
    ).split("\n")[:-1]

    names = {re.split(r"[<>=~;]", each)[0] for each in found}
    assert {"numpy", "aiohttp", "grpcio", "onnxruntime"} <= names
    assert {"core", "backend-python", "skl2onnx"} & names == set()
