"""Findings as SARIF 2.1.0, which code hosts show beside the lines of a change."""

from __future__ import annotations

import json
import os
from pathlib import Path
from typing import Any
from urllib.parse import quote

import core
from frontends.commands.check.finding import RULES, Edit, Finding
from frontends.commands.check.places.tree import Tree
from frontends.commands.check.survey import Survey

SCHEMA = (
    "https://docs.oasis-open.org/sarif/sarif/v2.1.0/errata01/os/schemas/sarif-schema-2.1.0.json"
)

_IDS = list(RULES)


def as_sarif(survey: Survey) -> str:
    """Return the text of a log with one run.

    Paths of files in the working folder, %SRCROOT%, are relative to it; others are absolute.
    """
    results = [_result(each, "") for each in survey.general]
    for report in survey.reports:
        results += [_result(each, report.config_text) for each in report.findings]
    run = {
        "tool": {
            "driver": {
                "name": "core check",
                "version": core.__version__,
                "rules": [
                    {"id": rule, "shortDescription": {"text": text}} for rule, text in RULES.items()
                ],
            }
        },
        "columnKind": "unicodeCodePoints",
        "originalUriBaseIds": {"%SRCROOT%": {"uri": f"{Path.cwd().as_uri().rstrip('/')}/"}},
        "results": results,
    }
    return json.dumps({"$schema": SCHEMA, "version": "2.1.0", "runs": [run]}, indent=2)


def _result(finding: Finding, text: str) -> dict[str, Any]:
    value: dict[str, Any] = {
        "ruleId": finding.rule,
        "ruleIndex": _IDS.index(finding.rule),
        "level": finding.level,
        "message": {"text": finding.text},
    }
    if finding.file is not None:
        place: dict[str, Any] = {"artifactLocation": _artifact(finding.file)}
        if finding.line:
            region = {"startLine": finding.line, "startColumn": finding.column}
            if finding.end_column > finding.column:
                region["endColumn"] = finding.end_column
            place["region"] = region
        value["locations"] = [{"physicalLocation": place}]
        if finding.edit is not None:
            value["fixes"] = [_fix(finding, finding.edit, text)]
    return value


def _fix(finding: Finding, edit: Edit, text: str) -> dict[str, Any]:
    assert finding.file is not None
    tree = Tree(text)
    (line, column), (end_line, end_column) = map(tree.line_and_column, (edit.start, edit.end))
    region = {
        "startLine": line,
        "startColumn": column,
        "endLine": end_line,
        "endColumn": end_column,
    }
    replacement: dict[str, Any] = {"deletedRegion": region}
    if edit.text:
        replacement["insertedContent"] = {"text": edit.text}
    does = f"write {edit.text.strip()}" if edit.text else "remove what the region holds"
    change = {"artifactLocation": _artifact(finding.file), "replacements": [replacement]}
    return {"description": {"text": does}, "artifactChanges": [change]}


def _artifact(file: Path) -> dict[str, str]:
    path = Path(os.path.abspath(file))
    if path.is_relative_to(Path.cwd()):
        relative = path.relative_to(Path.cwd())
        uri = quote(relative.as_posix(), errors="surrogateescape")
        return {"uri": uri, "uriBaseId": "%SRCROOT%"}
    return {"uri": path.as_uri()}
