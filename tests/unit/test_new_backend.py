"""The backend to start from works as it comes."""

import importlib.util
import os
import shutil
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


def run(package, *arguments):
    return subprocess.run(
        [sys.executable, "-m", *arguments],
        cwd=package,
        env={**os.environ, "PYTHONPATH": str(package)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module")
def package(tmp_path_factory):
    """A new backend, in a folder as this repository has it."""
    folder = tmp_path_factory.mktemp("backends")
    done = make("fresh", folder)
    assert done.returncode == 0, done.stderr
    return folder / "fresh"


def test_a_new_backend_passes_its_own_tests(package):
    tests = run(package, "pytest", "-q", "-p", "no:cacheprovider", "tests")

    assert tests.returncode == 0, tests.stdout + tests.stderr
    assert " passed" in tests.stdout
    assert "PytestUnknownMarkWarning" not in tests.stdout


@pytest.mark.parametrize("arguments", [("check",), ("format", "--check")])
def test_its_style_is_that_of_this_repository(package, tmp_path, arguments):
    # Which imports belong together depends on the folders around it.
    (tmp_path / "core").symlink_to(ROOT / "core")
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    shutil.copytree(package, tmp_path / "backends" / "fresh")
    if importlib.util.find_spec("ruff") is None:
        pytest.skip("ruff is not installed")

    done = run(tmp_path / "backends" / "fresh", "ruff", *arguments, "--no-cache", ".")

    assert done.returncode == 0, done.stdout + done.stderr


def test_its_types_are_right(package):
    if importlib.util.find_spec("mypy") is None:
        pytest.skip("mypy is not installed")

    done = run(package, "mypy", "--cache-dir", str(ROOT / ".mypy_cache"))

    assert done.returncode == 0, done.stdout + done.stderr


def test_its_name_is_everywhere(package):
    project = (package / "pyproject.toml").read_text()

    assert 'name = "backend-fresh"' in project
    assert '[project.entry-points."core.backends"]\nfresh = "backend_fresh:backend"' in project
    assert (package / "backend_fresh" / "py.typed").exists()
    written = [*package.rglob("*.py"), *package.rglob("*.toml"), *package.rglob("*.md")]
    assert not any("NAME" in path.read_text() for path in written)


@pytest.mark.parametrize(
    "name", ["", "My-Backend", "1st", "../x", "_x", "x_", "a__b", "ä", "a b", "x" * 41]
)
def test_a_name_that_no_package_can_have_is_refused(tmp_path, name):
    done = make(name, tmp_path)

    assert done.returncode != 0
    assert "cannot be the name of a backend" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_a_backend_that_is_there_is_not_overwritten(package):
    done = make("fresh", package.parent)

    assert done.returncode != 0
    assert "is there already" in done.stderr


def test_the_name_of_an_installed_backend_is_refused(tmp_path):
    done = make("python", tmp_path)

    assert done.returncode != 0
    assert "there is a backend named 'python' already: backend-python" in done.stderr


def test_the_template_itself_is_no_backend_of_this_repository():
    listed = subprocess.run(
        ["make", "--dry-run", "--print-data-base", "lint"],
        cwd=ROOT,
        capture_output=True,
        text=True,
        check=False,
    ).stdout
    backends = next(line for line in listed.splitlines() if line.startswith("BACKENDS :="))

    assert "backends/onnx" in backends
    assert "_template" not in backends
    for script in ("install", "run"):
        assert "backends/*/" not in (ROOT / ".ci" / script).read_text()
