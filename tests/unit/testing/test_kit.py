"""The contract kit lets good backends pass and names the mistakes of others."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

MISTAKES = {
    "TestMixesRows": "test_rows_of_several_requests_do_not_mix",
    "TestAnswersFromOneBuffer": "test_an_answer_does_not_change_under_later_requests",
    "TestGivesAnotherDatatype": "test_a_request_gets_its_answer",
    "TestWritesIntoItsInputs": "test_the_bytes_of_a_request_are_not_written_to",
    "TestLeavesAThread": "test_no_thread_or_process_stays_after_the_unload",
    "TestIsHeldForever": "test_nothing_holds_a_model_or_instance_after_the_unload",
    "TestCannotBeClosedTwice": "test_an_instance_may_be_closed_twice",
    "TestAnswersNothing": "test_a_request_gets_its_answer",
}
WELL = ("TestWell", "TestWellOnTheLoop", "TestWellAsCoroutine")
BACKENDS = Path(__file__).parent / "broken_backends.py"


@pytest.fixture(scope="module")
def outcomes():
    """(class, test) → "PASSED", "FAILED" or "SKIPPED", of one run of pytest."""
    chosen = [f"{BACKENDS}::{name}::{test}" for name, test in MISTAKES.items()]
    chosen += [f"{BACKENDS}::{name}" for name in WELL]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-v", "--tb=no", "-p", "no:cacheprovider", *chosen],
        capture_output=True,
        text=True,
        timeout=170,
        cwd=BACKENDS.parent,
    )
    found = re.findall(r"::(\w+)::(\w+) (PASSED|FAILED|SKIPPED|ERROR)", done.stdout)
    assert found, done.stdout + done.stderr
    return {(name, test): outcome for name, test, outcome in found}


@pytest.mark.parametrize("name", MISTAKES)
def test_a_mistake_is_found(outcomes, name):
    assert outcomes[name, MISTAKES[name]] == "FAILED"


@pytest.mark.parametrize("name", WELL)
def test_a_good_backend_passes(outcomes, name):
    found = {test: outcome for (each, test), outcome in outcomes.items() if each == name}

    assert set(found.values()) == {"PASSED", "SKIPPED"}
    assert len(found) > 40
