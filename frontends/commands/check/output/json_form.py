"""Findings as JSON, for programs."""

from __future__ import annotations

import json
from typing import Any

from frontends.commands.check.finding import Finding, Report
from frontends.commands.check.output.text import shown
from frontends.commands.check.survey import Survey


def as_json(survey: Survey, written: bool) -> str:
    """Return the text of a JSON object with `models`, `findings` of the repositories and `summary`.

    Paths of files are relative if they lie in the working folder.

    written   whether --write was given
    """
    value = {
        "models": [_model(each) for each in survey.reports],
        "findings": [_finding(each, None) for each in survey.general],
        "summary": {
            "models": len(survey.reports),
            "failed": sum(each.count("error") > 0 for each in survey.reports),
            **{
                f"{level}s": sum(each.level == level for each in survey.findings)
                for level in ("error", "warning", "note")
            },
            "written": written,
        },
    }
    return json.dumps(value, indent=2)


def _model(report: Report) -> dict[str, Any]:
    return {
        "name": report.name,
        "ok": not report.count("error"),
        "findings": [_finding(each, report) for each in report.findings],
    }


def _finding(finding: Finding, report: Report | None) -> dict[str, Any]:
    value: dict[str, Any] = {
        "level": finding.level,
        "rule": finding.rule,
        "text": finding.text,
        "file": None if finding.file is None else shown(finding.file),
        "line": finding.line or None,
        "column": finding.column or None,
    }
    if report is not None and (edit := finding.edit) is not None:
        value["edit"] = {"old": report.config_text[edit.start : edit.end], "new": edit.text}
        if report.is_mended(finding):
            value["mended"] = True
    return value
