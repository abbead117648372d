"""docs/options.md: every flag, in a table for each group."""

from __future__ import annotations

from itertools import groupby

from core.options.deprecated import ALIASES, DEPRECATED
from core.options.flags import Flags
from core.options.section import Flag
from core.options.usage import repeats, shown

_HEAD = """\
# Options of `core-serve`

Made by `make docs` from `core/options/table.py` and the `options.py` of each frontend. Names and defaults are
Triton's. Flags of plugins are on the pages of the plugins.

`--name=value` and `--name value` are the same. A boolean is `true`, `on`, `1`, `false`, `off` or
`0`, in any case. The beginning of a name is enough where only one flag begins so. A wrong command line
shows all flags and the reason on stderr; the exit status is 1.
"""


def page(flags: Flags) -> str:
    """Return the page, as Markdown."""
    parts = [_HEAD]
    for title, group in groupby(flags.rows, key=lambda flag: flag.group):
        rows = "".join(_row(flag) for flag in group)
        parts.append(f"\n## {title}\n\n| flag | default | meaning |\n|---|---|---|\n{rows}")
    aliases = "".join(f"| `--{old}` | `--{new}` |\n" for old, new in ALIASES.items())
    old = "".join(f"| `--{name}` | {_instead(name)} |\n" for name in DEPRECATED)
    parts.append(f"\n## Older names\n\n| flag | use instead |\n|---|---|\n{aliases}{old}")
    return "".join(parts)


def _row(flag: Flag) -> str:
    form = f" {flag.form.metavar}" if flag.form.metavar else ""
    default = f"`{shown(flag.default)}`" if flag.default not in ("", None, [], {}) else ""
    idle = f" **No effect:** {flag.idle}." if flag.idle else ""
    return f"| `--{flag.name}{form}` | {default} | {_cell(flag.help + repeats(flag))}{idle} |\n"


def _instead(name: str) -> str:
    return {
        "strict-model-config": "`--disable-auto-complete-config`",
        "response-cache-byte-size": "`--cache-config=local,size=<bytes>`",
    }.get(name, "`--trace-config`")


def _cell(text: str) -> str:
    return text.replace("|", r"\|").replace("<", "&lt;").replace("*", r"\*")
