"""The contract kit of frontends passes a correct frontend and finds the mistakes of broken ones."""

import importlib.util
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from core_testing import FrontendConformance

FRONTENDS = Path(__file__).parent / "broken_frontends.py"
TESTS = sorted(name for name in dir(FrontendConformance) if name.startswith("test_"))


def _mistakes():
    spec = importlib.util.spec_from_file_location("broken_frontends", FRONTENDS)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return {**module.MISTAKES}


MISTAKES = _mistakes()


@pytest.fixture(scope="module")
def outcomes():
    """Return {(class, test): outcome} of one run of pytest."""
    chosen = [f"{FRONTENDS}::{name}::{test}" for test, name in MISTAKES.items()]
    done = subprocess.run(
        [
            *(sys.executable, "-m", "pytest", "-v", "--tb=short", "-p", "no:cacheprovider"),
            *(*chosen, f"{FRONTENDS}::TestWell"),
        ],
        env={
            **os.environ,
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        },  # installed plugins of pytest would take seconds
        capture_output=True,
        text=True,
        timeout=170,
        cwd=FRONTENDS.parent,
    )
    found = re.findall(r"::(\w+)::(\w+) (PASSED|FAILED|SKIPPED|ERROR)", done.stdout)
    assert found, done.stdout + done.stderr
    return {(name, test): outcome for name, test, outcome in found}


def test_there_is_a_mistake_for_every_test_of_the_kit():
    assert set(MISTAKES) == set(TESTS)


@pytest.mark.parametrize("test", MISTAKES)
def test_a_mistake_is_found(outcomes, test):
    assert outcomes[MISTAKES[test], test] == "FAILED"


def test_a_correct_frontend_passes(outcomes):
    found = {test: outcome for (name, test), outcome in outcomes.items() if name == "TestWell"}

    assert set(found.values()) == {"PASSED"}
    assert sorted(found) == TESTS
