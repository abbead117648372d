"""Models of the repositories that the tests serve: a folder of models/, perhaps changed."""

import pathlib
import shutil

MODELS = pathlib.Path(__file__).resolve().parent / "models"


class Model:
    """A model of the repository: a folder of models/, perhaps renamed.

    ``config`` replaces config.pbtxt (``False`` leaves it out), ``versions``
    copies the only version folder to those numbers and ``files`` adds texts.
    """

    def __init__(self, name, base=None, config=None, versions=None, files=None):
        self.name = name
        self.base = base or name
        self.config = config
        self.versions = versions
        self.files = files or {}

    def write(self, repository, source=None):
        source = (source or MODELS) / self.base
        target = pathlib.Path(repository) / self.name
        shutil.copytree(source, target, ignore=shutil.ignore_patterns("__pycache__", "*.pyc"))
        if self.config is False:
            (target / "config.pbtxt").unlink()
        elif self.config is not None:
            (target / "config.pbtxt").write_text(self.config)
        if self.versions is not None:
            kept = target / "_version"
            (target / "1").rename(kept)
            for version in self.versions:
                shutil.copytree(kept, target / str(version))
            shutil.rmtree(kept)
        for path, text in self.files.items():
            file = target / path
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text)
        return target


def as_model(entry):
    return entry if isinstance(entry, Model) else Model(entry)
