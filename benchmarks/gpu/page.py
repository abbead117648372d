"""One page of the results: index.html beside the JSON files."""

from __future__ import annotations

import html
import json
from pathlib import Path
from typing import Any

STYLE = """body { font: 15px system-ui, sans-serif; margin: 2em auto; max-width: 75em; padding: 0 1em }
table { border-collapse: collapse; margin: 0.5em 0 2em }
th, td { padding: 0.25em 0.8em; text-align: right; border-bottom: 1px solid #8884 }
th { font-weight: 600 } .error { color: #b00020 } :root { color-scheme: light dark }"""


def write(folder: Path) -> None:
    """Write index.html from all results in a folder."""
    parts = [_section(json.loads(file.read_text())) for file in sorted(folder.glob("*.json"))]
    body = "\n".join(parts)
    text = '<!doctype html><html lang="en"><meta charset="utf-8"><title>GPU results</title>'
    text += f"<style>{STYLE}</style><h1>What the server does on a GPU</h1>{body}</html>\n"
    (folder / "index.html").write_text(text)


def _section(found: dict[str, Any]) -> str:
    head = f"<h2>{_shown(found['section'])}</h2><p>{_shown(found['gpu'])}, torch "
    head += f"{_shown(found['torch'])}, {found['seconds']} s</p>"
    if "error" in found:
        head += f'<p class="error">{_shown(found["error"])}</p>'
    names = list(dict.fromkeys(name for row in found["rows"] for name in row))
    rows = [
        "".join(f"<td>{_shown(row.get(name, ''))}</td>" for name in names) for row in found["rows"]
    ]
    titles = "".join(f"<th>{_shown(name.replace('_', ' '))}</th>" for name in names)
    return (
        head + f"<table><tr>{titles}</tr>" + "".join(f"<tr>{row}</tr>" for row in rows) + "</table>"
    )


def _shown(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:,.3f}" if abs(value) < 100 else f"{value:,.0f}"
    return html.escape(str(value))
