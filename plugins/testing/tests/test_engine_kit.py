"""The contract of engines finds the mistakes of broken engines."""

import importlib
import os
import subprocess
import sys
from pathlib import Path
from xml.etree import ElementTree

import broken_engines
import pytest
from broken_engines.contract import MISTAKES
from core_testing.engines import EmbeddingConformance, EngineConformance, RankConformance

ENGINES = Path(broken_engines.__file__).parent
# What EngineInstance does for every engine.
DONE_BY_CORE = {
    "test_what_the_engine_does_not_support_is_refused_by_its_name",
    "test_a_text_that_is_not_utf_8_is_refused",
}

for file in ENGINES.glob("[!_]*.py"):
    importlib.import_module(f"broken_engines.{file.stem}")  # which fills MISTAKES

TESTS = {
    name
    for contract in (EngineConformance, EmbeddingConformance, RankConformance)
    for name in dir(contract)
    if name.startswith("test_")
}


@pytest.fixture(scope="module")
def outcomes(tmp_path_factory):
    """Return {(file::class, test): "passed", "skipped" or the text of the failure} of one run of pytest."""
    report = tmp_path_factory.mktemp("report") / "report.xml"
    chosen = [f"{name}::{test}" for test, name in MISTAKES.items()]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", f"--junitxml={report}", *chosen],
        env={**os.environ, "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1"},
        capture_output=True,
        text=True,
        timeout=170,
        cwd=ENGINES,
    )
    assert report.exists(), done.stdout + done.stderr
    return dict(map(_outcome, ElementTree.parse(report).iter("testcase")))


def _outcome(case):
    *_, file, name = case.get("classname").split(".")
    found = next((each for each in case if each.tag in ("failure", "error", "skipped")), None)
    outcome = "passed" if found is None else found.tag
    return (f"{file}.py::{name}", case.get("name")), outcome


def test_there_is_a_mistake_for_every_test_of_the_contract():
    assert set(MISTAKES) == TESTS - DONE_BY_CORE


@pytest.mark.parametrize("test", MISTAKES)
def test_a_mistake_is_found(outcomes, test):
    assert outcomes[MISTAKES[test], test] == "failure"
