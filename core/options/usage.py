"""The text of --help."""

from __future__ import annotations

import textwrap
from itertools import groupby

from core.options.deprecated import DEPRECATED
from core.options.flags import Flags
from core.options.section import Flag


def usage(flags: Flags, program: str = "core-serve") -> str:
    """Return the text of --help: every flag with its form, meaning and default."""
    lines = [f"Usage: {program} [options]", "  --help", "\tPrint usage"]
    for title, rows in groupby(flags.rows, key=lambda flag: flag.group):
        lines += ["", f"{title}:"]
        for flag in rows:
            lines += _entry(flag.name, flag.form.metavar, _meaning(flag))
            if flag.name == "model-repository":
                lines += _entry("model-store", flag.form.metavar, "The same as --model-repository.")
    lines += ["", "DEPRECATED:"]
    for old in DEPRECATED.values():
        lines += _entry(old.name, old.metavar, old.warning.partition("! ")[2] or old.warning)
    return "\n".join(lines) + "\n"


def _meaning(flag: Flag) -> str:
    unset = not flag.form.metavar or flag.default in ("", None, [], {})
    default = "" if unset else f" Default: {shown(flag.default)}."
    return flag.help + repeats(flag) + default


def repeats(flag: Flag) -> str:
    """Return the sentence that a flag may be repeated, or ""."""
    return " May be given several times." if flag.form.repeats else ""


def shown(value: object) -> str:
    """Return a default in the notation of the command line."""
    if isinstance(value, tuple):
        return ",".join(value)
    return str(value).lower() if isinstance(value, bool) else str(value)


def _entry(name: str, metavar: str, text: str) -> list[str]:
    head = f"  --{name} {metavar}".rstrip()
    return [head, *textwrap.wrap(text, 76, initial_indent="\t", subsequent_indent="\t")]
