"""Check repositories: each of their models, then the steps of ensembles over all models.

repositories ─► [check_repositories] ─► reports
"""

from __future__ import annotations

import os
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from core.errors import described, internal, invalid
from core.repository import FolderRepository
from frontends.commands.check.ensembles import check_ensembles
from frontends.commands.check.finding import Finding, Report
from frontends.commands.check.layout import without_models
from frontends.commands.check.migration import notes_beside
from frontends.commands.check.model_check import CheckedModel, check_model
from frontends.commands.check.places.tree import tree_of
from frontends.commands.check.settings import Settings, one_line


@dataclass
class Survey:
    """What a check found.

    reports    one for each model, in the order of their names
    general    findings about the repositories themselves
    models     name → what is known of the model
    """

    reports: list[Report] = field(default_factory=list)
    general: list[Finding] = field(default_factory=list)
    models: dict[str, CheckedModel] = field(default_factory=dict)

    @property
    def findings(self) -> list[Finding]:
        return [*self.general, *(each for report in self.reports for each in report.findings)]


def check_repositories(repositories: Sequence[str], settings: Settings) -> Survey:
    """Check all models of the repositories. Of models with the same name, only the first is checked; the
    others are reported as an error of the first.

    Raises CoreError for a URL, and for a folder that cannot be listed.
    """
    survey = Survey()
    found: dict[str, list[tuple[Path, Path]]] = {}
    for repository in repositories:
        root = Path(repository).absolute()
        names = _names(repository)
        for name in names:
            found.setdefault(name, []).append((root / name, root))
        if not names:
            text = without_models(root)
            survey.general.append(Finding("error", "layout", f"{repository}: {text}", root))
        survey.general.extend(_beside(root, repository))
    for name, places in sorted(found.items()):
        folder, root = places[0]
        survey.models[name] = _checked(folder, root, settings)
        if len(places) > 1:
            both = " and ".join(f"'{each}'" for each, _ in places)
            text = f"several models have this name: {both}; rename one"
            survey.models[name].report.add(Finding("error", "name", text, folder))
    check_ensembles(survey.models)
    survey.reports = [each.report for each in survey.models.values()]
    return survey


def _names(repository: str) -> set[str]:
    if "://" in repository:
        raise invalid(f"'{repository}' is no folder: copy it to this machine to check it")
    folder = FolderRepository(repository)
    folder.check()
    try:
        return folder.names()
    except OSError as error:
        raise internal(f"failed to list '{repository}': {error.strerror}") from error


def _beside(root: Path, shown: str) -> Iterable[Finding]:
    with os.scandir(root) as entries:
        names = {each.name: _is_folder(each) for each in entries}
    return [Finding("note", "migration", text, root) for text in notes_beside(names, shown)]


def _is_folder(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir()
    except OSError:  # a link to itself, or to an inaccessible target
        return False


def _checked(folder: Path, root: Path, settings: Settings) -> CheckedModel:
    try:
        return check_model(folder, root, settings)
    except Exception as error:  # a model that breaks the check must not hide the others
        report = Report(folder.name, folder)
        text = f"the check of this model ended early: {one_line(described(error))}"
        report.add(Finding("error", "limit", text, folder))
        return CheckedModel(report, tree_of(""))
