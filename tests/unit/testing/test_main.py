"""python -m core.testing NAME prints its result, or the reason why there is no test to run."""

import os
import subprocess
import sys

import pytest

from core.testing.__main__ import NothingToRun, conformance_of, main

GOOD = """
import numpy as np
import pytest

import core
from core.testing import BackendConformance, Example

X = np.ones((2, 3), np.float32)


class Instance(core.ModelInstance):
    def execute(self, batch):
        return {"y": batch["x"] * FACTOR}


class TestContract(BackendConformance):
    @pytest.fixture
    def example(self, tmp_path):
        return Example(core.Backend(instance=Instance), tmp_path, {"x": X}, {"y": 2 * X})
"""


def run(folder, *arguments, **environment):
    return subprocess.run(
        [sys.executable, "-m", "core.testing", *arguments],
        cwd=folder,
        env={
            **os.environ,
            "PYTHONPATH": str(folder),
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",  # what is installed beside takes seconds
            **environment,
        },
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture
def package(tmp_path):
    """Write a package with a module `conformance`."""

    def write(name, text):
        (tmp_path / name).mkdir()
        (tmp_path / name / "__init__.py").touch()
        if text is not None:
            (tmp_path / name / "conformance.py").write_text(text)
        return tmp_path

    return write


def test_a_package_that_keeps_the_contract_ends_with_0(package):
    folder = package("backend_good", GOOD.replace("FACTOR", "2"))

    done = run(folder, "backend_good", "-q", "-k", "a_request_gets_its_answer")

    assert done.returncode == 0, done.stdout + done.stderr
    assert " passed" in done.stdout


def test_a_package_that_does_not_ends_with_1_and_prints_the_difference(package):
    folder = package("backend_bad", GOOD.replace("FACTOR", "3"))

    done = run(folder, "backend_bad", "-q", "-k", "a_request_gets_its_answer")

    assert done.returncode == 1
    assert "output 'y' is wrong" in done.stdout


def test_a_module_without_a_contract_ends_with_2_and_prints_what_it_needs(package):
    done = run(package("backend_empty", ""), "backend_empty")

    assert done.returncode == 2
    assert "it needs a class Test… that inherits core.testing.BackendConformance" in done.stderr


def test_no_arguments_show_how_it_is_used(capsys):
    assert main([]) == 2
    assert "python -m core.testing NAME" in capsys.readouterr().out


def test_without_pytest_it_prints_so(package):
    folder = package("backend_good", GOOD)
    hide = "import sys; sys.modules['pytest'] = None\n"
    (folder / "sitecustomize.py").write_text(hide)

    done = run(folder, "backend_good")

    assert done.returncode == 2
    assert "pytest, which is not installed; try: pip install pytest" in done.stderr


def test_a_package_that_is_not_installed_is_named_with_those_that_are():
    with pytest.raises(NothingToRun) as caught:
        conformance_of("nothing_of_this_name")

    assert "no package 'nothing_of_this_name'" in str(caught.value)
    assert "http" in str(caught.value)
    assert "pip install" not in str(caught.value)


def test_a_package_without_examples_is_reported_with_their_place(package, monkeypatch):
    monkeypatch.syspath_prepend(str(package("backend_mute", None)))

    with pytest.raises(NothingToRun, match=r"no module backend_mute\.conformance"):
        conformance_of("backend_mute")
    with pytest.raises(NothingToRun, match="brings no examples"):
        conformance_of("json.decoder")  # no package


@pytest.mark.parametrize("name", ["", "..", "a b", "backend_x.", ".x"])
def test_an_invalid_package_name_is_refused(name):
    with pytest.raises(NothingToRun):
        conformance_of(name)
