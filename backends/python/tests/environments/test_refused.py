"""Environments in which models cannot run, and their errors."""

import sys

import pytest
from backend_python import backend


async def test_a_path_that_is_not_there_is_named(runs_in, refused):
    assert await refused(runs_in("/nowhere/env.tar.gz")) == (
        "model 'm': EXECUTION_ENV_PATH '/nowhere/env.tar.gz' does not exist; expected an archive of "
        "conda-pack (.tar.gz, .zip), the folder of an environment, or a Python interpreter"
    )


async def test_a_folder_without_an_interpreter_is_an_error_with_its_entries(
    tmp_path, runs_in, refused
):
    (tmp_path / "env/include").mkdir(parents=True)

    assert await refused(runs_in(tmp_path / "env")) == (
        f"model 'm': EXECUTION_ENV_PATH '{tmp_path}/env' has no program bin/python, but include; "
        "expected the folder of an environment"
    )


async def test_an_interpreter_without_permission_is_an_error_with_advice(
    tmp_path, runs_in, refused
):
    python = tmp_path / "env/bin/python"
    python.parent.mkdir(parents=True)
    python.write_text("")

    assert await refused(runs_in(tmp_path / "env")) == (
        f"model 'm': EXECUTION_ENV_PATH '{tmp_path}/env' program '{python}' cannot be run; "
        f"try: chmod +x {python}"
    )


async def test_a_file_that_is_neither_archive_nor_program_is_named(tmp_path, runs_in, refused):
    (tmp_path / "notes.txt").write_text("hello")

    message = await refused(runs_in(tmp_path / "notes.txt"))

    assert "notes.txt' is no archive of a kind that is known, and no program; expected" in message


async def test_a_program_that_is_no_python_is_named(runs_in, refused):
    message = await refused(runs_in("/bin/false"))

    assert message == (
        "model 'm': EXECUTION_ENV_PATH '/bin/false' '/bin/false' does not run as Python 3.9 or later: "
        "exit status 1"
    )


async def test_an_environment_without_numpy_is_an_error(tmp_path, runs_in, venv, refused):
    bare = venv(tmp_path / "bare")

    assert await refused(runs_in(bare)) == (
        f"model 'm': EXECUTION_ENV_PATH '{bare}' its Python {sys.version.split()[0]} "
        f"('{bare}/bin/python') cannot run models: it has no numpy; they need Python 3.9 or later "
        "with numpy"
    )


async def test_a_numpy_that_cannot_be_imported_is_an_error(tmp_path, runs_in, venv, refused):
    (tmp_path / "broken").mkdir()
    (tmp_path / "broken/numpy.py").write_text("import nothing_like_that")
    environment = venv(tmp_path / "env", path=[tmp_path / "broken"])

    message = await refused(runs_in(environment))

    assert "its numpy cannot be imported: No module named 'nothing_like_that'" in message


@pytest.mark.parametrize("version", ["3.6", "3.7", "3.8"])
async def test_an_interpreter_that_is_too_old_is_an_error(version, runs_in, interpreter, refused):
    python = interpreter(version)
    if python is None:
        pytest.skip(f"there is no Python {version} here")

    message = await refused(runs_in(python))

    assert f"its Python {version}." in message
    assert "cannot run models: it is too old; they need Python 3.9 or later" in message


@pytest.mark.parametrize(
    "name,value,expected",
    [
        ("environment-cache-directory", "here", "an absolute path"),
        ("environment-max-byte-size", "much", "a positive number"),
        ("install-requirements", "perhaps", "true or false"),
    ],
)
async def test_settings_that_make_no_sense_are_refused(monkeypatch, name, value, expected, refused):
    monkeypatch.setattr(backend, "config", {name: value})

    message = await refused("")

    assert message == f"--backend-config=python,{name}={value}: expected {expected}"


@pytest.mark.parametrize("mode", ["thread", "inline"])
async def test_an_environment_needs_a_process(same, mode, templates, runs_in, refused, parameter):
    message = await refused(runs_in(same) + parameter("EXECUTION_MODE", mode))

    assert message == (
        "model 'm': an environment of its own needs EXECUTION_MODE process or shared, found "
        f"'{mode}', which runs with the server's packages"
    )
    assert templates() == []
