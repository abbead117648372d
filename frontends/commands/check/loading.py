"""`--load`: load each model that the check finds right once, without a server, and report why one fails."""

from __future__ import annotations

import time
from pathlib import Path

from core.config import ModelConfig
from core.errors import CoreError
from core.options import Options
from frontends.commands.check.finding import Report
from frontends.commands.check.settings import Place, one_line
from frontends.commands.check.survey import Survey


def load_models(survey: Survey, options: Options) -> None:
    """Load and release the selected versions of each model without errors, one after the other.

    Set `loaded` in the report of a model, or add an error to the report for the first version that fails.
    Models whose folder is a link out of the repository are left out.
    """
    for model in survey.models.values():
        if not model.fails and not model.outside:
            place = Place(model.report, model.tree, model.config or ModelConfig())
            _load(model.report, place, options)


def _load(report: Report, place: Place, options: Options) -> None:
    from frontends.commands.offline import offline_model, wanted_versions

    folder: Path = report.folder
    began = time.monotonic()
    try:
        model = offline_model(folder, options, tried=True)
        versions = wanted_versions(model)
        for number in versions:
            if number != model.version.version:
                offline_model(folder, options, number, tried=True)
    except Exception as error:  # the code of a model may raise anything
        text = error.message if isinstance(error, CoreError) else f"{type(error).__name__}: {error}"
        report.add(place.finding("error", "load", one_line(text)))
        return
    kind = model.config.backend or "ensemble"
    numbers = ", ".join(map(str, versions))
    noun = "version" if len(versions) == 1 else "versions"
    report.loaded = f"{kind}, {noun} {numbers}, {time.monotonic() - began:.1f} s"
