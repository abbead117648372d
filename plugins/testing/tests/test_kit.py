"""The contract kit passes correct backends and finds the mistakes of broken ones."""

import importlib
import os
import re
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import broken_backends
import numpy as np
import pytest
from broken_backends.contract import MISTAKES, SAYS
from core_testing import BackendConformance, Example

import core
from core.errors import internal

# Correct backends, each with a pattern of the tests that run for it; "" for all.
WELL = {
    "well.py::TestWell": "",
    "completion.py::TestCompletesWell": "configuration",
    "completion.py::TestKnowsNothing": "configuration",
    "well.py::TestWellOnTheLoop": "execution|row|order",
    "well.py::TestWellAsCoroutine": "execution|row|order",
    "well.py::TestWellInAll": "stream|sequence|text|shape",
}
BACKENDS = Path(broken_backends.__file__).parent
NEED_A_GPU = {
    "test_an_instance_of_a_gpu_group_answers_as_on_the_cpu",
    "test_two_instances_share_a_gpu",
    "test_memory_of_a_gpu_is_free_again_after_the_unload",
}


for file in BACKENDS.glob("[!_]*.py"):
    importlib.import_module(f"broken_backends.{file.stem}")  # which fills MISTAKES

TESTS = sorted(name for name in dir(BackendConformance) if name.startswith("test_"))
# Further mistakes: class → the test that must fail, and a part of the failure's text.
DESCRIBED = "test_a_model_without_a_configuration_is_described_by_its_files"
EXTRA = {
    "completion.py::TestWritesAnUnknownDatatype": (
        DESCRIBED,
        "and no max_batch_size: load failed for model 'example': version 1 is at UNAVAILABLE state: "
        "Internal: complete() at broken_backends/completion.py:",
    ),
    "completion.py::TestWritesAnotherRank": (DESCRIBED, "with dims [3, 1] and max_batch_size 8"),
    "completion.py::TestWritesAnotherName": (
        DESCRIBED,
        "the inputs ['X'], the example also has ['x']",
    ),
    "answers.py::TestGivesNoNames": (
        "test_a_request_gets_its_answer",
        "execute of model 'example' returned a ndarray, it must return outputs by their names",
    ),
    "answers.py::TestGivesWhatIsNoArray": ("test_a_request_gets_its_answer", "not today"),
    "lifecycle.py::TestLeavesAFile": (
        "test_nothing_stays_after_many_loads",
        "files stay open: 1",
    ),
    "lifecycle.py::TestLeavesSharedMemory": (
        "test_nothing_stays_after_many_loads",
        "shared memory stays after the unloads: left-by-the-test-",
    ),
    "lifecycle.py::TestHangs": ("test_a_request_gets_its_answer", "nothing came within 1 s"),
}


def _held(name):
    return [test for test in TESTS if re.search(WELL[name], test)]


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    """Return {(file::class, test): "passed", "skipped" or the text of the failure} of one run of pytest."""
    report = tmp_path_factory.mktemp("report") / "report.xml"
    chosen = [f"{name}::{test}" for test, name in MISTAKES.items()]
    chosen += [f"{name}::{test}" for name, (test, _) in EXTRA.items()]
    chosen += [f"{name}::{test}" for name in WELL for test in _held(name)]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", f"--junitxml={report}", *chosen],
        env={
            **os.environ,
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
        },  # installed plugins of pytest would take seconds
        capture_output=True,
        text=True,
        timeout=170,
        cwd=BACKENDS,
    )
    assert report.exists(), done.stdout + done.stderr
    return dict(map(_outcome, ElementTree.parse(report).iter("testcase")))


def _outcome(case):
    *_, file, name = case.get("classname").split(".")
    found = next((each for each in case if each.tag in ("failure", "error", "skipped")), None)
    outcome = (
        "passed" if found is None else "skipped" if found.tag == "skipped" else found.get("message")
    )
    return (f"{file}.py::{name}", case.get("name")), outcome


def test_there_is_a_mistake_for_every_test_of_the_kit():
    assert set(TESTS) - NEED_A_GPU == set(MISTAKES)


@pytest.mark.parametrize("test", MISTAKES)
def test_a_mistake_is_found(outcomes, test):
    words = outcomes[MISTAKES[test], test]

    assert words not in ("passed", "skipped")
    assert SAYS[MISTAKES[test], test] in words


@pytest.mark.parametrize("name", EXTRA)
def test_further_mistakes_are_found(outcomes, name):
    test, words = EXTRA[name]

    assert words in outcomes[name, test]


@pytest.mark.parametrize("name", WELL)
def test_a_correct_backend_passes(outcomes, name):
    found = {test: outcome for (each, test), outcome in outcomes.items() if each == name}

    assert {t: words for t, words in found.items() if words not in ("passed", "skipped")} == {}
    assert sorted(found) == _held(name)


@pytest.fixture
def example(tmp_path):
    x = np.array([[1, 2], [3, 4]], np.float32)
    return Example(core.Backend(instance=core.ModelInstance), tmp_path, {"x": x}, {"y": -x})


def test_a_wrong_answer_is_reported_with_input_expected_and_found(example):
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
def test_other_differences_are_reported(example, found, text):
    with pytest.raises(AssertionError) as caught:
        example.check(found)

    assert text in str(caught.value)
