"""The pages of docs that are made from code: python -m frontends.pages docs

operate/options.md lists the flags of core and of the frontends. The tables at the end of operate/metrics.md
list the metrics of core and of the installed plugins. The table at the end of operate/commands.md lists the
commands.
"""

from __future__ import annotations

import re
import sys
from collections.abc import Sequence
from itertools import groupby
from pathlib import Path

from core import plugins
from core.control.metrics.watch import open_sources
from core.options import Flag, Flags, Options
from core.options.deprecated import ALIASES, DEPRECATED
from core.options.usage import repeats, shown
from core.telemetry.metrics.catalog import PARTS, Entry
from frontends.flags import core_add_options

_HEAD = """\
[Documentation](../index.md) / Operate

# Options of `core-serve`

Made by `make docs` from `core/options/table.py` and the `options.py` of each frontend. Names and defaults are
Triton's. Flags of plugins are on the pages of the plugins.

`--name=value` and `--name value` are the same. A boolean is `true`, `on`, `1`, `false`, `off` or
`0`, in any case, and needs no value to be true. The beginning of a name is enough where only one
flag begins so. A wrong command line of `core-serve` shows all flags and the reason on stderr; the
exit status is 1. `core serve` takes the same flags (commands.md).
"""
_LINKED = re.compile(r"docs/(\w+)/([\w-]+)\.md")
_INSTEAD = {
    "strict-model-config": "`--disable-auto-complete-config`",
    "response-cache-byte-size": "`--cache-config=local,size=<bytes>`",
}


def options_page() -> str:
    """Return docs/operate/options.md: every flag of core and of the frontends, in a table for each group."""
    flags = Flags()
    core_add_options(flags)
    parts = [_HEAD]
    for title, group in groupby(flags.rows, key=lambda flag: flag.group):
        rows = "".join(map(_flag_row, group))
        parts.append(f"\n## {title}\n\n| flag | default | meaning |\n|---|---|---|\n{rows}")
    aliases = "".join(f"| `--{old}` | `--{new}` |\n" for old, new in ALIASES.items())
    old = "".join(
        f"| `--{name}` | {_INSTEAD.get(name, '`--trace-config`')} |\n" for name in DEPRECATED
    )
    parts.append(f"\n## Older names\n\n| flag | use instead |\n|---|---|\n{aliases}{old}")
    return "".join(parts)


def _flag_row(flag: Flag) -> str:
    form = f" {flag.form.metavar}" if flag.form.metavar else ""
    default = f"`{shown(flag.default)}`" if flag.default not in ("", None, [], {}, ()) else ""
    idle = f" **No effect:** {flag.idle}." if flag.idle else ""
    text = flag.help + repeats(flag)
    cell = _LINKED.sub(r"[\2](../\1/\2.md)", text)
    cell = cell.replace("|", r"\|").replace("<", "&lt;").replace("*", r"\*")
    return f"| `--{flag.name}{form}` | {default} | {cell}{idle} |\n"


def metrics_page(text: str) -> str:
    """Return docs/operate/metrics.md, whose text is `text`, with the current tables at its end."""
    tables = [_metrics_table(title, entries) for title, entries in metric_parts().items()]
    return text.partition(f"### {next(iter(PARTS))}\n")[0] + "\n".join(tables)


def metric_parts() -> dict[str, Sequence[Entry]]:
    """Return title → metric families, of core and of the installed plugins."""
    plugins.load_hooks()
    parts: dict[str, Sequence[Entry]] = dict(PARTS)
    for source in open_sources(Options.defaults()).values():
        parts.update(source.catalog)
    return parts


def _metrics_table(title: str, entries: Sequence[Entry]) -> str:
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
    return "\n".join(lines) + "\n"


def commands_page(text: str) -> str:
    """Return docs/operate/commands.md, whose text is `text`, with the current table at its end."""
    rows = "".join(
        f"| `core {name}` | {plugin.load().summary} | {_extra(name, plugin)} |\n"
        for name, plugin in plugins.available_commands().items()
    )
    head = text.partition("## All commands\n")[0]
    return f"{head}## All commands\n\n| command | meaning | extra |\n|---|---|---|\n{rows}"


def _extra(name: str, plugin: plugins.Plugin) -> str:
    """Return the extra that installs a command, in backticks; "" if core itself has it or no extra does."""
    own = plugin.distribution.startswith("core ")
    return "" if own or name not in plugins.extras() else f"`core[{name}]`"


if __name__ == "__main__":
    docs = Path(sys.argv[1]) / "operate"
    (docs / "options.md").write_text(options_page())
    metrics = docs / "metrics.md"
    metrics.write_text(metrics_page(metrics.read_text()))
    commands = docs / "commands.md"
    commands.write_text(commands_page(commands.read_text()))
