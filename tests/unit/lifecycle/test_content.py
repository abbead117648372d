"""The content id of a version: cached responses belong to one content."""

import os

import pytest

from core.plugins import HostedBackend

from .conftest import RecordingBackend


class FolderBackend(RecordingBackend, HostedBackend):
    """One whose models a file of a folder may run."""


@pytest.fixture
async def backend():
    return FolderBackend()


@pytest.fixture
async def content(folder, started, config):
    """Return a function that loads model m again and returns its content id."""
    folder.model("m", config=config, text="2")
    manager = await started()

    async def content():
        await manager.unload("m")
        await manager.settled()
        await manager.load("m", {})
        return manager.resolve("m").content

    return content


async def test_a_version_that_is_loaded_again_is_unchanged(content):
    assert await content() == await content()


async def test_another_file_makes_another_version(content, folder):
    before = await content()

    (folder.path / "m/1/model.txt").write_text("22")

    assert await content() != before


@pytest.mark.parametrize("change", ["text", "time", "new", "deep"])
async def test_another_file_in_the_folder_that_runs_it_makes_another_version(
    content, backend, tmp_path, change
):
    home = tmp_path / "backend"
    backend.file = home / "model.py"
    (home / "inner").mkdir(parents=True)
    (home / "model.py").write_text("x = 1")
    (home / "inner/deep.py").write_text("x = 1")
    before = await content()
    assert await content() == before

    if change == "time":
        os.utime(home / "model.py", (1, 1))
    else:
        file = {"text": "model.py", "new": "other.py", "deep": "inner/deep.py"}[change]
        (home / file).write_text("x = 234")

    assert await content() != before


async def test_bytecode_next_to_it_makes_no_other_version(content, backend, tmp_path):
    home = tmp_path / "backend"
    backend.file = home / "model.py"
    (home / "__pycache__").mkdir(parents=True)
    before = await content()

    (home / "__pycache__/model.cpython-311.pyc").write_bytes(b"x")

    assert await content() == before
