"""Write the catalog into docs/metrics.md: python -m core.control.metrics.page docs/metrics.md

The tables at the end of the page are those of core, then those of the installed plugins.
"""

from __future__ import annotations

import sys
from collections.abc import Mapping, Sequence
from pathlib import Path

from core import plugins
from core.control.metrics.watch import open_sources
from core.options import Options
from core.telemetry.metrics.catalog import PARTS, Entry


def all_parts() -> dict[str, Sequence[Entry]]:
    """Return the catalog with the families of installed plugins, by title."""
    plugins.load_hooks()
    parts: dict[str, Sequence[Entry]] = dict(PARTS)
    for source in open_sources(Options.defaults()).values():
        parts.update(source.catalog)
    return parts


def page(text: str) -> str:
    """Return the page with its tables replaced by the current ones."""
    above, _, _ = text.partition(f"### {next(iter(PARTS))}\n")
    return above + tables(all_parts())


def tables(parts: Mapping[str, Sequence[Entry]]) -> str:
    """Return a catalog in Markdown."""
    found = []
    for title, entries in parts.items():
        lines = [
            f"### {title}",
            "",
            "| metric | kind | labels | exposed | help |",
            "|---|---|---|---|---|",
        ]
        for each in entries:
            labels = ", ".join(f"`{label}`" for label in each.labels)
            labels += " (`gpu_uuid`)" if each.instances else ""
            given = each.given or "always"
            lines.append(f"| `{each.name}` | {each.kind} | {labels} | {given} | {each.help} |")
        found.append("\n".join(lines) + "\n")
    return "\n".join(found)


if __name__ == "__main__":
    place = Path(sys.argv[1])
    place.write_text(page(place.read_text()))
