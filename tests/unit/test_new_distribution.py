"""The templates of a backend and a plugin work unchanged."""

import importlib.util
import os
import shutil
import subprocess
import sys
from pathlib import Path
from typing import NamedTuple

import pytest

ROOT = Path(__file__).parents[2]


class New(NamedTuple):
    """A new distribution.

    folder   as this repository has it
    site     where it is installed
    """

    kind: str
    package: str
    folder: Path
    site: Path


def make(kind, name, folder):
    return subprocess.run(
        [sys.executable, ROOT / "examples" / "new_distribution.py", kind, name, folder],
        capture_output=True,
        text=True,
        check=False,
    )


def run(folder, *arguments, path=""):
    return subprocess.run(
        [sys.executable, "-m", *arguments],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(path)},
        capture_output=True,
        text=True,
        check=False,
    )


@pytest.fixture(scope="module", params=["backend", "plugin"])
def kind(request):
    return request.param


@pytest.fixture(scope="module")
def new(kind, tmp_path_factory):
    parent = tmp_path_factory.mktemp(f"{kind}s")
    done = make(kind, "fresh", parent)
    assert done.returncode == 0, done.stderr
    folder, site = parent / "fresh", parent / "site"
    done = run(
        *(folder, "pip", "install", "--quiet", "--no-deps", "--no-build-isolation"),
        *("--no-index", "--target", str(site), "."),
    )
    assert done.returncode == 0, done.stdout + done.stderr
    return New(kind, {"backend": "backend", "plugin": "core"}[kind] + "_fresh", folder, site)


def test_it_passes_its_own_tests(new):
    tests = run(new.folder, "pytest", "-q", "-p", "no:cacheprovider", "tests", path=new.site)

    assert tests.returncode == 0, tests.stdout + tests.stderr
    assert " passed" in tests.stdout
    assert "PytestUnknownMarkWarning" not in tests.stdout


def test_it_is_listed_with_its_distribution(new):
    listed = run(new.folder, "core", "plugins", path=new.site).stdout

    line = next(line for line in listed.splitlines() if line.split()[:1] == ["fresh"])
    assert new.package.replace("_", "-") in line


@pytest.mark.parametrize("arguments", [("check",), ("format", "--check")])
def test_its_style_is_that_of_this_repository(new, tmp_path, arguments):
    # Which imports belong together depends on the folders around it.
    (tmp_path / "core").symlink_to(ROOT / "core")
    shutil.copy(ROOT / "pyproject.toml", tmp_path)
    copy = shutil.copytree(new.folder, tmp_path / f"{new.kind}s" / "fresh")
    if importlib.util.find_spec("ruff") is None:
        pytest.skip("ruff is not installed")

    done = run(copy, "ruff", *arguments, "--no-cache", ".")

    assert done.returncode == 0, done.stdout + done.stderr


def test_its_types_are_right(new):
    if importlib.util.find_spec("mypy") is None:
        pytest.skip("mypy is not installed")

    cache = str(ROOT / ".mypy_cache")
    done = run(new.folder, "mypy", "--cache-dir", cache, path=new.folder)

    assert done.returncode == 0, done.stdout + done.stderr


def test_its_name_is_everywhere(new):
    project = (new.folder / "pyproject.toml").read_text()

    assert f'name = "{new.package.replace("_", "-")}"' in project
    assert f'[project.entry-points."core.{new.kind}s"]\nfresh = "{new.package}' in project
    assert (new.folder / new.package / "py.typed").exists()
    written = [path for path in new.folder.rglob("*") if path.suffix in (".py", ".toml", ".md")]
    assert not any("NAME" in path.read_text() for path in written)


@pytest.mark.parametrize(
    "name", ["", "My-Backend", "1st", "../x", "_x", "x_", "a__b", "ä", "a b", "x" * 41]
)
def test_a_name_that_no_package_can_have_is_refused(kind, tmp_path, name):
    done = make(kind, name, tmp_path)

    assert done.returncode != 0
    assert f"cannot be the name of a {kind}" in done.stderr
    assert list(tmp_path.iterdir()) == []


def test_one_that_is_there_is_not_overwritten(new):
    done = make(new.kind, "fresh", new.folder.parent)

    assert done.returncode != 0
    assert "is there already" in done.stderr


def test_the_name_of_an_installed_one_is_refused(new, tmp_path, monkeypatch):
    monkeypatch.setenv("PYTHONPATH", str(new.site))

    done = make(new.kind, "fresh", tmp_path)

    assert done.returncode != 0
    assert f"there is a {new.kind} named 'fresh' already: {new.package.replace('_', '-')}" in (
        done.stderr
    )


def test_a_kind_that_does_not_exist_is_refused(tmp_path):
    done = make("frontend", "fresh", tmp_path)

    assert done.returncode != 0
    assert "new_distribution.py KIND NAME FOLDER" in done.stderr
