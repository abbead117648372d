"""Environments of this machine's interpreters, and models that run in them."""

import functools
import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from backend_python import backend
from backend_python.environments.environment import environments

from core.errors import CoreError


def numpy_alone(folder):
    """Return a folder with this interpreter's numpy, and no other installed package."""
    site = Path(np.__file__).parents[1]
    folder.mkdir()
    for name in ("numpy", "numpy.libs"):
        if (site / name).exists():
            (folder / name).symlink_to(site / name)
    return folder


def venv(folder, python=sys.executable, path=()):
    """Return a virtual environment without pip, which also searches the folders of `path`."""
    subprocess.run([python, "-m", "venv", "--without-pip", "--copies", str(folder)], check=True)
    (site,) = folder.glob("lib/python3*/site-packages")
    (site / "more.pth").write_text("".join(f"{each}\n" for each in path))
    return folder


@pytest.fixture(name="interpreter", scope="session")
def _interpreter():
    return interpreter


def interpreter(version):
    """Return a Python of that version on this machine, None if there is none."""
    pyenv = sorted(Path.home().glob(f".pyenv/versions/{version}.*/bin/python"))
    for found in (*map(str, pyenv), shutil.which(f"python{version}"), f"/usr/bin/python{version}"):
        if found and Path(found).exists() and version in _version(found):
            return found
    return None


def _version(python):
    told = subprocess.run([python, "--version"], capture_output=True, text=True, check=False)
    return told.stdout


@pytest.fixture(scope="session")
def python_of():
    """python_of("3.9") is an interpreter of that version; else the test is skipped."""

    def python_of(version):
        if (found := interpreter(version)) is None:
            pytest.skip(f"there is no Python {version} here")
        return found

    return python_of


@pytest.fixture(scope="session")
def numpy_of(tmp_path_factory):
    """numpy_of("3.9") is a folder with numpy for that version; else the test is skipped."""

    @functools.cache
    def numpy_of(version):
        packages = tmp_path_factory.mktemp("packages") / version
        # The server's pip brings it: an old Python's may not know the index.
        command = [sys.executable, "-m", "pip", "--disable-pip-version-check", "install", "--quiet"]
        command += ["--no-deps", "--no-compile", "--only-binary=:all:"]
        command += [f"--python-version={version}", f"--target={packages}", "numpy"]
        brought = subprocess.run(command, capture_output=True, text=True)
        if brought.returncode:
            pytest.skip(f"numpy for Python {version} cannot be had: {brought.stderr[-200:]}")
        return packages

    return numpy_of


@pytest.fixture
def parameter():
    """An entry of `parameters` in config.pbtxt."""
    return lambda name, value: (
        f' parameters {{ key: "{name}" value {{ string_value: "{value}" }} }}'
    )


@pytest.fixture
def runs_in(parameter):
    return lambda path: parameter("EXECUTION_ENV_PATH", path)


@pytest.fixture(name="venv", scope="session")
def _venv():
    return venv


@pytest.fixture(scope="session")
def numpy_only(tmp_path_factory):
    return numpy_alone(tmp_path_factory.mktemp("numpy") / "alone")


@pytest.fixture(scope="session")
def same(tmp_path_factory, numpy_only):
    """An environment of this Python's version, with numpy."""
    return venv(tmp_path_factory.mktemp("same") / "environment", path=[numpy_only])


@pytest.fixture
def cache(tmp_path, monkeypatch):
    """The cache folder of the test."""
    folder = tmp_path / "cache"
    monkeypatch.setattr(backend, "config", {"environment-cache-directory": str(folder)})
    yield folder
    environments.close()


TELLS = """
    def initialize(self, args):
        import backend_python.protocol
        self.told = {
            "prefix": sys.prefix,
            "numpy": np.__file__,
            "path": sys.path,
            "reader": backend_python.protocol.Reader.__module__,
            "environment": dict(os.environ),
        }

    def execute(self, requests):
        return [pb_utils.InferenceResponse([
            pb_utils.Tensor("y", np.array([json.dumps(self.told)], np.object_))
        ]) for _ in requests]
"""


@pytest.fixture
def told(serve):
    """Return a model's description of its interpreter, with that configuration."""

    async def told(more):
        model = await serve(TELLS, more, datatype="BYTES")
        answer = await model.ask({"x": np.array([b"x"], object)})
        return json.loads(answer.output("y").array[0])

    return told


@pytest.fixture
def refused(serve):
    """refused(more): serve a model with this configuration, which must fail; return the error's text."""

    async def refused(more, source="def execute(self, requests): return []"):
        with pytest.raises(CoreError) as error:
            await serve(source, more)
        return error.value.message

    return refused
