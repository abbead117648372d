"""Parts of a page: the whole document, tables and figures. Other reports, such as core tune's, use them too.

A page has no scripts, and nothing from another host. All arguments are plain text, unless they say HTML.
"""

from __future__ import annotations

from collections.abc import Sequence
from html import escape

from core_bench.report.charts import Axis, Line, chart, legend

_STYLE = """
:root { color-scheme: light dark; --line: #8884; --soft: #888; }
body { font: 15px/1.5 system-ui, sans-serif; max-width: 76rem; margin: 2rem auto; padding: 0 1rem; }
table { border-collapse: collapse; margin: .5rem 0 1rem; display: block; overflow-x: auto; }
td, th { padding: .2rem .7rem; text-align: right; border-bottom: 1px solid var(--line); white-space: nowrap; }
td:first-child, th:first-child { text-align: left; }
th { color: var(--soft); font-weight: normal; }
.charts { display: flex; flex-wrap: wrap; gap: 1.5rem; }
figure { margin: 0; flex: 1 1 26rem; }
figcaption { font-weight: 600; }
svg { width: 100%; height: auto; }
svg text { font-size: 11px; fill: currentColor; }
svg .grid { stroke: var(--line); }
.legend span { margin-right: 1rem; }
.legend i { display: inline-block; width: .8em; height: .8em; margin-right: .3em; }
.error { color: #c92a2a; }
pre { overflow-x: auto; padding: .5rem; border: 1px solid var(--line); }
.added { color: #2b8a3e; }
.removed { color: #c92a2a; }
"""


def document(title: str, body: str) -> str:
    """Return a page. `body` is the HTML below its heading."""
    return (
        '<!doctype html><html lang="en"><head><meta charset="utf-8">'
        '<meta name="viewport" content="width=device-width">'
        f"<title>{escape(title)}</title><style>{_STYLE}</style></head>"
        f"<body><h1>{escape(title)}</h1>{body}</body></html>\n"
    )


def table(head: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Return a table as HTML."""
    titles = "".join(f"<th>{escape(each)}</th>" for each in head)
    lines = "".join(
        "<tr>" + "".join(f"<td>{escape(each)}</td>" for each in row) + "</tr>" for row in rows
    )
    return f"<table><tr>{titles}</tr>{lines}</table>"


def figure(title: str, lines: Sequence[Line], across: Axis, up: Axis) -> str:
    """Return a chart with its title and the names of its lines, as HTML."""
    shown = f"{chart(lines, across, up)}{legend(lines)}"
    return f"<figure><figcaption>{escape(title)}</figcaption>{shown}</figure>"


def charts(figures: str) -> str:
    """Return figures beside each other, as HTML."""
    return f'<div class="charts">{figures}</div>'


def difference(text: str) -> str:
    """Return a unified difference as HTML."""
    classes = {"+": "added", "-": "removed"}
    lines = (
        f'<span class="{classes.get(line[:1], "")}">{escape(line)}</span>'
        for line in text.splitlines()
    )
    return f"<pre>{chr(10).join(lines)}</pre>"
