"""Findings for people: grouped by model, with colours on terminals, and a summary."""

from __future__ import annotations

import os
from collections.abc import Sequence
from pathlib import Path

from frontends.commands.check.finding import Finding, Report
from frontends.commands.check.survey import Survey

_ORDER = {"error": 0, "warning": 1, "note": 2}
_COLOURS = {
    "error": "31",
    "warning": "33",
    "note": "36",
    "failed": "31",
    "ok": "32",
    "mended": "32",
}


def as_text(survey: Survey, colours: bool) -> str:
    """Return the findings as lines of text.

    colours   whether the lines are for a terminal; the variable NO_COLOR switches colours off
    """
    colours = colours and not os.environ.get("NO_COLOR")
    lines: list[str] = []
    for finding in survey.general:
        lines += _lines(finding, None, colours)
    width = max((len(each.name) for each in survey.reports), default=0)
    for report in survey.reports:
        lines.append(_head(report, width, colours))
        for finding in sorted(report.findings, key=_rank):
            lines += [f"  {each}" for each in _lines(finding, report, colours)]
    return "\n".join([*lines, _summary(survey)])


def _rank(finding: Finding) -> tuple[int, str, int, int]:
    return _ORDER[finding.level], str(finding.file or ""), finding.line, finding.column


def _head(report: Report, width: int, colours: bool) -> str:
    left = [each for each in report.findings if each.level == "error"]
    state = "ok"
    if left:
        state = "mended" if all(map(report.is_mended, left)) else "failed"
    loaded = f"  {report.loaded}" if report.loaded and state == "ok" else ""
    return f"{report.name:{width}}  {_coloured(state, state, colours)}{loaded}"


def _lines(finding: Finding, report: Report | None, colours: bool) -> Sequence[str]:
    place = printable(shown(finding.file)) if finding.file is not None else ""
    if place and finding.line:
        place += f":{finding.line}:{finding.column}"
    level = _coloured(finding.level, finding.level, colours)
    text = f"{place}: {level}: {printable(_shortened(finding.text, report))} [{finding.rule}]"
    if not place:
        text = text.removeprefix(": ")
    if finding.edit is not None:
        mended = report is not None and report.is_mended(finding)
        text += "  (mended)" if mended else "  (--write mends it)"
    return [text]


def _shortened(text: str, report: Report | None) -> str:
    """Return the text of a finding with the model's folder written as `shown` writes it."""
    return text if report is None else text.replace(str(report.folder), shown(report.folder))


def _summary(survey: Survey) -> str:
    count = len(survey.reports)
    failed = sum(each.count("error") > 0 for each in survey.reports)
    parts = []
    for level in ("error", "warning", "note"):
        number = sum(each.level == level for each in survey.findings)
        parts.append(f"{number} {level}{'' if number == 1 else 's'}")
    done = sum(report.is_mended(each) for report in survey.reports for each in report.findings)
    open_ = sum(each.edit is not None for each in survey.findings) - done
    more = (f"; {done} mended" if done else "") + (f"; --write mends {open_}" if open_ else "")
    return f"{count} model{'' if count == 1 else 's'}, {failed} failed: {', '.join(parts)}{more}"


def printable(text: str) -> str:
    """Return the text with escapes for what is unprintable, except newline and tab: files choose names."""
    return "".join(
        each if each.isprintable() or each in "\n\t" else _escaped(each) for each in text
    )


def _escaped(character: str) -> str:
    return character.encode("unicode_escape", "surrogatepass").decode("ascii", "replace")


def shown(path: Path) -> str:
    """Return a path relative to the working folder if it lies in it; any other path is unchanged."""
    try:
        relative = os.path.relpath(path)
    except ValueError:  # another drive
        return str(path)
    return str(path) if relative.startswith("..") else relative


def _coloured(text: str, colour: str, colours: bool) -> str:
    return f"\033[{_COLOURS[colour]}m{text}\033[0m" if colours else text
