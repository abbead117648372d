"""The user's paths in the place of those in the temporary repository that a command makes of them.

links   path in the temporary repository → the path that the user wrote
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

from frontends.commands.check.finding import Finding
from frontends.commands.check.survey import Survey
from frontends.commands.paths import as_written


def name_paths(survey: Survey, links: Mapping[str, str]) -> None:
    """Put the user's paths, made absolute, in the findings and reports of `survey`, which is changed."""
    absolute = {link: os.path.abspath(path) for link, path in links.items()}
    survey.general = [_named(each, absolute) for each in survey.general]
    for report in survey.reports:
        report.findings = [_named(each, absolute) for each in report.findings]
        report.folder = _path(report.folder, absolute)
        if report.config_file is not None:
            report.config_file = _path(report.config_file, absolute)


def _named(finding: Finding, links: Mapping[str, str]) -> Finding:
    file = None if finding.file is None else _path(finding.file, links)
    return replace(finding, file=file, text=as_written(finding.text, links))


def _path(path: Path, links: Mapping[str, str]) -> Path:
    """Return the user's path for one in the temporary repository; any other path is returned unchanged.

    A model that is made of one file has that file for all its paths.
    """
    for link in sorted(links, key=len, reverse=True):
        if path.is_relative_to(link):
            user = Path(links[link])
            return user / path.relative_to(link) if user.is_dir() else user
    return path
