"""One page of the results: goals with met or missed, then the rows of each section."""

from __future__ import annotations

import html
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from benchmarks.gpu import goals

STYLE = """body { font: 15px system-ui, sans-serif; margin: 2em auto; max-width: 95em; padding: 0 1em }
table { border-collapse: collapse; margin: 0.5em 0 2em }
th, td { padding: 0.25em 0.8em; text-align: right; border-bottom: 1px solid #8884 }
th { font-weight: 600 } .error, .missed { color: #b00020 } .met { color: #1b7a3d }
:root { color-scheme: light dark }
@media (prefers-color-scheme: dark) { .error, .missed { color: #ff8a9a } .met { color: #6fd08c } }"""


def write(folder: Path, found: Mapping[str, Any]) -> None:
    """Write index.html from the results of all sections."""
    sections = found["sections"]
    body = _table(goals.summary(sections), lambda row: {"result": row["result"]})
    body += "".join(_section(name, each) for name, each in sections.items())
    machine = ", ".join(f"{name} {value}" for name, value in found["machine"].items())
    text = '<!doctype html><html lang="en"><meta charset="utf-8"><title>GPU results</title>'
    text += f"<style>{STYLE}</style><h1>What the server does on a GPU</h1><p>{_shown(machine)}</p>"
    (folder / "index.html").write_text(f"{text}<h2>Goals</h2>{body}</html>\n")


def lines(found: Mapping[str, Any]) -> list[str]:
    """Return the goals that were judged, and the sections that failed, as lines of text."""
    sections = found["sections"]
    shown = [
        f"{row['result']:7} {row['section']:12} {row['rows']:9} {row['goal']}, worst {_shown(row['worst'])}"
        for row in goals.summary(sections)
        if row["result"] != goals.UNKNOWN
    ]
    shown += [f"error    {each}" for each in errors(found)]
    left_out = [(name, each["left_out"]) for name, each in sections.items() if "left_out" in each]
    return shown + [f"left out {name}: {why}" for name, why in left_out]


def errors(found: Mapping[str, Any]) -> list[str]:
    """Return what failed: sections, and rows of sections that went on."""
    shown = []
    for name, each in found["sections"].items():
        if "error" in each:
            shown.append(f"{name}: {each['error'][:200]}")
        rows = [row["error"] for row in each["rows"] if "error" in row]
        if rows:
            shown.append(f"{name}: {len(rows)} rows, such as {rows[0][:200]}")
    return shown


def _section(name: str, found: Mapping[str, Any]) -> str:
    head = f"<h2>{_shown(name)}</h2><p>{found['seconds']} s</p>"
    if "left_out" in found:
        head += f"<p>Left out: {_shown(found['left_out'])}</p>"
    if "error" in found:
        head += f'<p class="error">{_shown(found["error"])}</p>'

    def classes(row: Mapping[str, Any]) -> dict[str, str]:
        judged = goals.missed(name, row)
        return {column: goals.MISSED if missed else goals.MET for column, missed in judged.items()}

    return head + _table(found["rows"], classes)


def _table(rows: Sequence[Mapping[str, Any]], classes: Any) -> str:
    """Return rows as HTML. classes: row → {column: class of its cell}"""
    names = list(dict.fromkeys(name for row in rows for name in row))
    titles = "".join(f"<th>{_shown(name.replace('_', ' '))}</th>" for name in names)
    shown = "".join(f"<tr>{_cells(row, names, classes(row))}</tr>" for row in rows)
    return f"<table><tr>{titles}</tr>{shown}</table>"


def _cells(row: Mapping[str, Any], names: Iterable[str], classes: Mapping[str, str]) -> str:
    found = ""
    for name in names:
        kind = f' class="{classes[name]}"' if name in classes else ""
        # A colour alone says nothing to some readers.
        mark = {goals.MET: "&nbsp;✓", goals.MISSED: "&nbsp;✗"}.get(classes.get(name, ""), "")
        found += f"<td{kind}>{_shown(row.get(name, ''))}{mark}</td>"
    return found


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.3f}" if abs(value) < 100 else f"{value:,.0f}"
    return html.escape(str(value))
