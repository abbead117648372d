"""Requirements of models, installed from wheels that the tests make: no network is needed."""

import logging
import os
import shutil
import sys
import zipfile
from importlib.metadata import distribution
from pathlib import Path

import numpy as np
import pytest
from backend_python import backend
from backend_python.environments import requirements
from backend_python.environments.environment import environments
from backend_python.environments.interpreter import Found
from backend_python.server.template import template

from core.options import Options
from core.request import InferenceRequest
from core.server import InferenceServer
from core.tensor import Tensor

BIN = Path(sys.executable).parent
GREETS = """
    def execute(self, requests):
        import greeting
        return [pb_utils.InferenceResponse([
            pb_utils.Tensor("y", np.array([len(greeting.TEXT)], np.float32))
        ]) for _ in requests]
"""


def wheel(folder, name, version, files, tag="py3-none-any"):
    """Write a wheel of these files: path → text or bytes."""
    info = f"{name}-{version}.dist-info"
    files = dict(files)
    files[f"{info}/METADATA"] = f"Metadata-Version: 2.1\nName: {name}\nVersion: {version}\n"
    files[f"{info}/WHEEL"] = f"Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: {tag}\n"
    files[f"{info}/RECORD"] = "".join(f"{each},,\n" for each in [*files, f"{info}/RECORD"])
    path = folder / f"{name}-{version}-{tag}.whl"
    with zipfile.ZipFile(path, "w") as archive:
        for each, content in files.items():
            archive.writestr(each, content)
    return path


@pytest.fixture(scope="session")
def wheels(tmp_path_factory):
    """Return a folder with a wheel of the installed numpy, and one of `greeting`."""
    folder = tmp_path_factory.mktemp("wheels")
    numpy = distribution("numpy")
    files = {
        str(file): file.locate().read_bytes()
        for file in numpy.files
        if file.parts[0] in ("numpy", "numpy.libs") and "tests" not in file.parts
        if file.suffix != ".pyc"
    }
    tags = numpy.read_text("WHEEL").splitlines()
    (tag, *_) = (line.removeprefix("Tag: ") for line in tags if line.startswith("Tag: "))
    wheel(folder, "numpy", numpy.version, files, tag)
    wheel(folder, "greeting", "1.0", {"greeting.py": "TEXT = 'hello'\n"})
    return folder


@pytest.fixture
def needs(folder, wheels):
    """Write requirements, by default those of GREETS, beside model.py or to another place."""

    def needs(*lines, at="1/requirements.txt"):
        file = folder / at
        file.parent.mkdir(parents=True, exist_ok=True)
        given = lines or ("numpy", "greeting==1.0")
        file.write_text("\n".join(["--no-index", f"--find-links {wheels}", *given, ""]))
        return file

    return needs


@pytest.fixture
def installs(parameter):
    return parameter("REQUIREMENTS", "requirements.txt")


@pytest.fixture
def without_uv(monkeypatch):
    """Hide uv, so that pip installs."""
    found = shutil.which
    monkeypatch.setattr(
        shutil, "which", lambda name, **more: None if name == "uv" else found(name, **more)
    )


@pytest.fixture(params=["uv", "pip"])
def installer(request):
    if request.param == "pip":
        request.getfixturevalue("without_uv")
    elif shutil.which("uv", path=f"{BIN}{os.pathsep}{os.environ['PATH']}") is None:
        pytest.skip("uv is not installed")
    return request.param


async def test_requirements_of_a_model_are_installed_and_it_runs(
    serve, needs, installs, cache, installer, caplog
):
    caplog.set_level(logging.INFO)
    file = needs()

    model = await serve(GREETS, installs)

    assert await model.y(1) == [5]
    assert f"model 'm': installing '{file}' with " in caplog.text
    assert f"{installer}\n" in caplog.text
    steps = {"pip": "Installing collected packages: ", "uv": "Resolved "}
    assert f"model 'm': {steps[installer]}" in caplog.text


async def test_the_example_is_served(wheels, monkeypatch, tmp_path):
    # Its packages come from the test; one of them is not the real one.
    own = tmp_path / "own"
    own.mkdir()
    wheel(own, "humanize", "4.0", {"humanize.py": "def naturalsize(n): return f'{n / 1000} kB'\n"})
    monkeypatch.setenv("PIP_NO_INDEX", "1")
    monkeypatch.setenv("PIP_FIND_LINKS", f"{wheels} {own}")
    monkeypatch.setenv("UV_OFFLINE", "1")
    monkeypatch.setenv("UV_CACHE_DIR", str(tmp_path / "uv"))
    monkeypatch.setenv("UV_FIND_LINKS", f"{wheels},{own}")
    example = Path(__file__).parents[4] / "examples/environment/models"
    settings = {"python": {"environment-cache-directory": str(tmp_path / "cache")}}
    server = InferenceServer(
        Options.defaults(model_repository=[str(example)], backend_config=settings)
    )
    try:
        await server.start()
        sizes = Tensor.of("bytes", np.array([[4_200_000]], np.int64))
        response = await server.models.infer(InferenceRequest("sizes", {"bytes": sizes}))
        assert response.output("text").array.tolist() == [[b"4200.0 kB"]]
    finally:
        await server.stop(10.0)
        environments.close()


def test_equal_requirements_are_installed_once(
    load, write, needs, installs, cache, tmp_path, caplog
):
    caplog.set_level(logging.INFO)
    first = needs()
    second = tmp_path / "n/1/requirements.txt"
    write(tmp_path / "n", GREETS)
    shutil.copyfile(first, second)

    load(tmp_path / "m", GREETS, installs).unload()
    load(tmp_path / "n", GREETS, installs).unload()

    assert caplog.text.count(": installing ") == 1
    assert len(list(cache.glob("requirements-*/"))) == 1


async def test_a_failed_installation_is_an_error_with_its_last_lines(
    needs, installs, cache, refused
):
    file = needs("numpy", "nothing-like-that==7")

    message = await refused(installs)

    assert message.startswith(f"model 'm': requirements '{file}' '")
    assert f"-r {file}' failed: exit status 1\n" in message
    assert "nothing-like-that==7" in message
    assert list(cache.glob("requirements-*/")) == []


async def test_requirements_without_numpy_are_refused(needs, installs, cache, refused):
    file = needs("greeting")

    message = await refused(installs)

    assert message.startswith(f"model 'm': requirements '{file}' its Python {sys.version[:4]}")
    assert "cannot run models: it has no numpy" in message


async def test_a_file_that_is_not_enabled_is_not_installed(serve, needs, cache):
    needs("nothing-like-that")

    model = await serve("def execute(self, requests): return []")

    assert model.model.template is template
    assert not cache.exists()


@pytest.mark.parametrize("at", ["1/requirements.txt", "requirements.txt"])
async def test_the_server_may_be_configured_to_install_all_files(
    needs, cache, refused, monkeypatch, at
):
    monkeypatch.setitem(backend.config, "install-requirements", "true")
    file = needs("nothing-like-that", at=at)

    assert (await refused("")).startswith(f"model 'm': requirements '{file}' ")


async def test_a_model_may_refuse_that(serve, needs, cache, monkeypatch, parameter):
    monkeypatch.setitem(backend.config, "install-requirements", "true")
    needs("nothing-like-that")

    await serve("def execute(self, requests): return []", parameter("REQUIREMENTS", ""))

    assert not cache.exists()


async def test_a_file_that_is_not_there_is_named_with_where_it_was_looked_for(
    refused, parameter, folder
):
    message = await refused(parameter("REQUIREMENTS", "needs.txt"))

    assert message == (
        "model 'm': there is no file 'needs.txt', which parameter REQUIREMENTS names, in "
        f"'{folder}/1' or '{folder}'"
    )


async def test_requirements_do_not_go_into_an_environment_that_exists(
    needs, installs, runs_in, same, cache, refused
):
    file = needs()

    assert await refused(installs + runs_in(same)) == (
        f"model 'm': requirements '{file}' cannot be added to the environment of EXECUTION_ENV_PATH "
        f"'{same}'; with REQUIREMENTS it must name a Python interpreter, or nothing"
    )


# keys -----------------------------------------------------------------------

BASE = Found("3.11.7", "/bin/python", "/usr", "")


@pytest.fixture
def file(tmp_path):
    file = tmp_path / "requirements.txt"
    file.write_text("numpy\n-r more.txt\n./package  # local\n")
    (tmp_path / "more.txt").write_text("-c limits.txt\n")
    (tmp_path / "limits.txt").write_text("numpy<3\n")
    (tmp_path / "package").mkdir()
    (tmp_path / "package/module.py").write_text("x = 1")
    return file


def test_an_environment_is_found_again(file):
    assert requirements.key(file, BASE) == requirements.key(file, BASE)


@pytest.mark.parametrize(
    "changed", ["requirements.txt", "more.txt", "limits.txt", "package/module.py"]
)
def test_changed_requirements_are_installed_again(file, tmp_path, changed):
    before = requirements.key(file, BASE)

    with (tmp_path / changed).open("a") as text:
        text.write("\n# another\n")

    assert requirements.key(file, BASE) != before


def test_another_interpreter_has_another_environment(file):
    other = Found("3.12.1", "/bin/python", "/usr", "")

    assert requirements.key(file, BASE) != requirements.key(file, other)


def test_requirements_that_name_each_other_end(tmp_path):
    (tmp_path / "a.txt").write_text("-r b.txt\n")
    (tmp_path / "b.txt").write_text("--requirement=a.txt\n")

    assert requirements.key(tmp_path / "a.txt", BASE)
