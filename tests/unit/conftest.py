"""Model folders on disk, for every test that needs a repository."""

from pathlib import Path

import pytest


class ModelFolder:
    """A model repository that tests write to. Its models are of the backend `test`."""

    CONFIG = 'backend: "test"\n'

    def __init__(self, path: Path):
        self.path = path
        path.mkdir(exist_ok=True)

    def model(self, name, versions=(1,), config=CONFIG, text="x", files=()):
        """Write a model: `text` into each version's model.txt; `files` are more, path → text."""
        directory = self.path / name
        directory.mkdir()
        if config is not None:
            (directory / "config.pbtxt").write_text(config)
        for version in versions:
            self.version(name, version, text)
        for path, content in dict(files).items():
            (directory / path).parent.mkdir(parents=True, exist_ok=True)
            (directory / path).write_text(content)
        return directory

    def version(self, name, version, text="x"):
        """Write a version of a model."""
        directory = self.path / name / str(version)
        directory.mkdir()
        (directory / "model.txt").write_text(text)
        return directory


@pytest.fixture
def folder(tmp_path):
    return ModelFolder(tmp_path / "models")


@pytest.fixture
def other(tmp_path):
    return ModelFolder(tmp_path / "other")
