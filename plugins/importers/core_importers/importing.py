"""Import one source: choose its reader, and write the model."""

from __future__ import annotations

from pathlib import Path

from core_importers import sources
from core_importers.draft import Draft
from core_importers.wishes import Wishes


def import_model(source: str, repository: Path, wishes: Wishes) -> Draft:
    """Write the model of `source` into the repository; return its draft, for the report.

    Nothing of the source is executed. If the source cannot be taken, the repository stays unchanged.
    Raises CoreError with the reason if the source cannot be taken, and OSError.
    """
    found = sources.source_of(source)
    with Draft(repository, wishes) as draft:
        _read(found, draft)
        draft.finish()
        return draft


def _read(found: sources.Source, draft: Draft) -> None:
    # Imported here: one reader is needed.
    if found.kind == sources.TORCHSERVE:
        from core_importers import torchserve

        torchserve.read(found.path, draft)
    elif found.kind == sources.MLFLOW:
        from core_importers import mlflow

        mlflow.read(found.path, draft)
    elif found.kind == sources.BENTO_MODEL:
        from core_importers import bento_model

        bento_model.read(found.path, draft)
    elif found.kind == sources.BENTO:
        from core_importers import bento_service

        bento_service.read_bento(found.path, draft)
    else:
        from core_importers import python_file

        python_file.read(found.path, found.member, draft)
