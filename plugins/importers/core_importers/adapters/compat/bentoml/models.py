"""Models of the store: folders in $BENTOML_HOME/models, else ~/bentoml/models."""

import os
from pathlib import Path

TRUSTED = False  # set by model.py: whether config.pbtxt lets pickles be read


class Model:
    """A stored model. `path_of` returns the path of a file in it."""

    def __init__(self, folder):
        self.path = str(folder)
        self.tag = f"{folder.parent.name}:{folder.name}"

    def path_of(self, item):
        return str(Path(self.path) / item)


def get(tag):
    """Return the model of a tag: name, name:latest or name:version. Raises FileNotFoundError without it."""
    name, _, version = str(tag).partition(":")
    store = Path(os.environ.get("BENTOML_HOME") or Path.home() / "bentoml") / "models"
    folder = store / name
    if version in ("", "latest"):
        latest = folder / "latest"
        version = latest.read_text().strip() if latest.is_file() else "latest"
    if not (folder / version).is_dir():
        raise FileNotFoundError(f"the store '{store}' has no model '{tag}'")
    return Model(folder / version)


class BentoModel:
    """As an attribute of a service: the model of the tag."""

    def __init__(self, tag):
        self.tag = tag

    def __get__(self, instance, owner):
        return self if instance is None else self.resolve()

    def resolve(self, base_path=None):
        return get(self.tag)


class HuggingFaceModel:
    """As an attribute of a service: the folder of a model of Hugging Face, downloaded if it is missing."""

    def __init__(self, model_id, revision="main"):
        self.model_id = model_id
        self.revision = revision

    def __get__(self, instance, owner):
        return self if instance is None else self.resolve()

    def resolve(self, base_path=None):
        from huggingface_hub import snapshot_download

        return snapshot_download(self.model_id, revision=self.revision)


def check_trust(model):
    """Return the file of a model. Raises PermissionError unless config.pbtxt trusts pickles."""
    if not TRUSTED:
        raise PermissionError(
            f"'{saved(model)}' is a pickle, and reading it runs the code in it; if you trust its author, "
            'import with --trust, or set parameters { key: "TRUSTED" value { string_value: "true" } }'
        )
    return saved(model)


def saved(model):
    """Return the path of the file saved_model.* of a Model, or of the model of a tag."""
    found = model if isinstance(model, Model) else get(model)
    return str(next(Path(found.path).glob("saved_model.*")))
