"""Which kind of source a path is."""

from __future__ import annotations

import os
import re
import tarfile
import zipfile
from pathlib import Path
from typing import NamedTuple

from core.errors import CoreError, invalid, not_found

TORCHSERVE, MLFLOW, BENTO_MODEL, BENTO, PYTHON = "torchserve", "mlflow", "model", "bento", "python"

ACCEPTED = (
    "a .mar archive of TorchServe, a folder with the file MLmodel, a model or Bento of BentoML (folder with "
    "model.yaml or bento.yaml, .bentomodel, .bento, or NAME:VERSION in the store), or a Python file with a "
    "LitAPI or a class with @bentoml.service"
)
_URL = re.compile(r"[a-z][a-z0-9+.-]*:/")
_TAG = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]*(:[A-Za-z0-9][A-Za-z0-9._-]*)?")
_FOLDERS = {
    "MAR-INF/MANIFEST.json": TORCHSERVE,
    "MLmodel": MLFLOW,
    "model.yaml": BENTO_MODEL,
    "bento.yaml": BENTO,
}
_SUFFIXES = {".bentomodel": BENTO_MODEL, ".bento": BENTO}


class Source(NamedTuple):
    """What the user named.

    member   CLASS or CLASS.METHOD of a Python file, else ""
    """

    kind: str
    path: Path
    member: str = ""


def source_of(text: str) -> Source:
    """Return what kind of source `text` is; reads no more than names in archives.

    Raises CoreError(NOT_FOUND) if it does not exist, CoreError(INVALID) if it is of no known kind.
    """
    path = Path(text)
    if path.is_dir():
        return _folder(path)
    if path.is_file():
        return _file(path, "")
    before, _, member = text.rpartition(":")
    if before.endswith(".py") and Path(before).is_file():
        return _file(Path(before), member)
    if _URL.match(text):
        raise invalid(
            f"'{text}' is a URL; download the model first, for example with "
            "mlflow.artifacts.download_artifacts, and give the folder"
        )
    if _TAG.fullmatch(text) and (stored := _stored(text)) is not None:
        return stored
    raise not_found(f"there is no file or folder '{text}'; expected {ACCEPTED}")


def model_store() -> Path:
    """Return the folder with BentoML's models: $BENTOML_HOME/models, or ~/bentoml/models."""
    return Path(os.environ.get("BENTOML_HOME") or Path.home() / "bentoml") / "models"


def version_of(folder: Path, version: str = "") -> Path:
    """Return the folder of a version in BentoML's store; the latest one without `version`.

    Raises CoreError(NOT_FOUND) if there is none.
    """
    latest = folder / "latest"
    if version in ("", "latest"):
        version = latest.read_text().strip() if latest.is_file() else ""
    if not version or not (folder / version).is_dir():
        there = ", ".join(sorted(each.name for each in folder.iterdir() if each.is_dir()))
        raise not_found(f"'{folder}' has no version '{version or 'latest'}'; there are {there}")
    return folder / version


def _stored(tag: str) -> Source | None:
    name, _, version = tag.partition(":")
    for kind, folder in ((BENTO_MODEL, model_store()), (BENTO, model_store().parent / "bentos")):
        if (folder / name).is_dir():
            return Source(kind, version_of(folder / name, version))
    return None


def _folder(path: Path) -> Source:
    for name, kind in _FOLDERS.items():
        if (path / name).is_file():
            return Source(kind, path)
    if (path / "latest").is_file():
        return _folder(version_of(path))
    inside = sorted(path.glob("*/MLmodel"))
    if len(inside) == 1:
        raise invalid(f"'{path}' is no model; '{inside[0].parent}' is one of MLflow, give that")
    raise invalid(f"'{path}' is a folder of no known kind; expected {ACCEPTED}")


def _file(path: Path, member: str) -> Source:
    if path.suffix == ".py":
        return Source(PYTHON, path, member)
    if path.name == "MLmodel":
        return Source(MLFLOW, path.parent)
    if path.suffix in _SUFFIXES:
        return Source(_SUFFIXES[path.suffix], path)
    if path.suffix == ".war":
        raise invalid(
            f"'{path}' is a workflow of TorchServe: several models. Import each .mar, and connect them "
            "by an ensemble"
        )
    if path.suffix == ".mar" or _has_manifest(path):
        return Source(TORCHSERVE, path)
    raise invalid(f"'{path}' is a file of no known kind; expected {ACCEPTED}")


def _has_manifest(path: Path) -> bool:
    """Return whether an archive has a MANIFEST.json of TorchServe."""
    try:
        if zipfile.is_zipfile(path):
            with zipfile.ZipFile(path) as archive:
                return "MAR-INF/MANIFEST.json" in archive.namelist()
        if path.name.endswith((".tar.gz", ".tgz")) and tarfile.is_tarfile(path):
            with tarfile.open(path) as tar:
                return any(each.name.endswith("MAR-INF/MANIFEST.json") for each in tar)
    except (zipfile.BadZipFile, tarfile.TarError, EOFError) as error:
        raise _damaged(path, error) from error
    return False


def _damaged(path: Path, error: Exception) -> CoreError:
    return invalid(f"'{path}' is damaged: {error}")
