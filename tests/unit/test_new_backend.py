"""The backend to start from works as it comes."""

import os
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]


def make(name, folder):
    return subprocess.run(
        [sys.executable, ROOT / "examples" / "new_backend.py", name, folder],
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_new_backend_passes_its_own_test(tmp_path):
    assert make("fresh", tmp_path).returncode == 0
    package = tmp_path / "fresh"
    tests = subprocess.run(
        [sys.executable, "-m", "pytest", "-q", "-o", "asyncio_mode=auto", "tests"],
        cwd=package,
        env={**os.environ, "PYTHONPATH": str(package)},
        capture_output=True,
        text=True,
        check=False,
    )

    assert tests.returncode == 0, tests.stdout + tests.stderr
    assert " passed" in tests.stdout


@pytest.mark.parametrize("name", ["", "My-Backend", "1st", "../x"])
def test_a_name_that_no_package_can_have_is_refused(tmp_path, name):
    done = make(name, tmp_path)

    assert done.returncode != 0
    assert "cannot be the name of a backend" in done.stderr


def test_a_backend_that_is_there_is_not_overwritten(tmp_path):
    make("fresh", tmp_path)

    done = make("fresh", tmp_path)

    assert done.returncode != 0
    assert "is there already" in done.stderr
