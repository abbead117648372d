"""The contract kit lets good backends pass and names the mistakes of others."""

import importlib.util
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

import core
from core.errors import internal
from core.testing import BackendConformance, Example

# Good backends, with the words of the tests that they are held against; "" for all.
WELL = {
    "TestWell": "",
    "TestWellOnTheLoop": "execution|row|order",
    "TestWellAsCoroutine": "execution|row|order",
    "TestWellInAll": "stream|sequence|text|shape",
}
BACKENDS = Path(__file__).parent / "broken_backends.py"
NEED_A_GPU = {
    "test_an_instance_of_a_gpu_group_answers_as_on_the_cpu",
    "test_two_instances_share_a_gpu",
    "test_memory_of_a_gpu_is_free_again_after_the_unload",
}


def _mistakes():
    spec = importlib.util.spec_from_file_location("broken_backends", BACKENDS)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return {**module.MISTAKES}


MISTAKES = _mistakes()
TESTS = sorted(name for name in dir(BackendConformance) if name.startswith("test_"))
EXTRA = {"TestLeavesAFile": "test_nothing_stays_after_many_loads"}


def _held(name):
    return [test for test in TESTS if re.search(WELL[name], test)]


def run(*chosen):
    return subprocess.run(
        [sys.executable, "-m", "pytest", "-v", "--tb=line", "-p", "no:cacheprovider", *chosen],
        capture_output=True,
        text=True,
        timeout=170,
        cwd=BACKENDS.parent,
    )


@pytest.fixture(scope="module")
def outcomes():
    """(class, test) → "PASSED", "FAILED", "SKIPPED" or "ERROR", of one run of pytest."""
    chosen = [f"{BACKENDS}::{name}::{test}" for test, name in MISTAKES.items()]
    chosen += [f"{BACKENDS}::{name}::{test}" for name, test in EXTRA.items()]
    chosen += [f"{BACKENDS}::{name}::{test}" for name in WELL for test in _held(name)]
    done = run(*chosen)
    found = re.findall(r"::(\w+)::(\w+) (PASSED|FAILED|SKIPPED|ERROR)", done.stdout)
    assert found, done.stdout + done.stderr
    return {(name, test): outcome for name, test, outcome in found}


def test_there_is_a_mistake_for_every_test_of_the_kit():
    assert set(TESTS) - NEED_A_GPU == set(MISTAKES)


@pytest.mark.parametrize("test", MISTAKES)
def test_a_mistake_is_found(outcomes, test):
    assert outcomes[MISTAKES[test], test] == "FAILED"


@pytest.mark.parametrize("name", EXTRA)
def test_another_mistake_is_found_too(outcomes, name):
    assert outcomes[name, EXTRA[name]] == "FAILED"


@pytest.mark.parametrize("name", WELL)
def test_a_good_backend_passes(outcomes, name):
    found = {test: outcome for (each, test), outcome in outcomes.items() if each == name}

    assert set(found.values()) <= {"PASSED", "SKIPPED"}
    assert sorted(found) == _held(name)


@pytest.fixture
def example(tmp_path):
    x = np.array([[1, 2], [3, 4]], np.float32)
    return Example(core.Backend(instance=core.ModelInstance), tmp_path, {"x": x}, {"y": -x})


def test_a_wrong_answer_is_told_with_input_expected_and_found(example):
    with pytest.raises(AssertionError) as caught:
        example.check({"y": np.array([[-1, -2], [3, -4]], np.float32)})

    assert str(caught.value).splitlines() == [
        "output 'y' is wrong: 1 of 4 elements differ, first [1, 0]: np.float32(3.0), not "
        "np.float32(-3.0)"
        if np.__version__ >= "2"
        else "output 'y' is wrong: 1 of 4 elements differ, first [1, 0]: 3.0, not -3.0",
        "  expected",
        "    y: float32 [2, 2]",
        "      [[-1. -2.]",
        "       [-3. -4.]]",
        "  found",
        "    y: float32 [2, 2]",
        "      [[-1. -2.]",
        "       [ 3. -4.]]",
        "  of the inputs",
        "    x: float32 [2, 2]",
        "      [[1. 2.]",
        "       [3. 4.]]",
    ]


@pytest.mark.parametrize(
    ("found", "text"),
    [
        ({"z": np.zeros(1)}, "outputs ['z'] were found, ['y'] expected"),
        ({"y": np.zeros((1, 2), np.float32)}, "its shape is [1, 2], not [2, 2]"),
        ({"y": np.zeros((2, 2))}, "its datatype is float64, not float32"),
        (internal("it broke"), "an error in the place of the answer: it broke"),
    ],
)
def test_another_difference_is_told_too(example, found, text):
    with pytest.raises(AssertionError) as caught:
        example.check(found)

    assert text in str(caught.value)
