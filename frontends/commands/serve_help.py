"""The short text of `core serve --help`: what people need first.

Meanings and defaults are those of the flags.
"""

from __future__ import annotations

import textwrap

from core.options import Flag, Flags
from core.options.usage import shown

_HEAD = """\
usage: core serve PATH… [flags]

  PATH is a model repository (a folder with one folder for each model), the folder of one model,
  or a file of a model, which is served under its name:

    core serve models/
    core serve digits.onnx
    core serve app.py --dev
"""
_GROUPS = {
    "Models": ("dev", "trust", "model-control-mode", "load-model", "exit-on-error"),
    "Network": ("http-port", "http-address", "grpc-port", "metrics-port", "workers"),
    "Security": ("secure", "auth-tokens"),
    "Log": ("log-verbose", "log-file", "terminal"),
}
_WIDTH = 100


def short_help(flags: Flags) -> str:
    """Return the text of `core serve --help`: usage, then those flags of _GROUPS that `flags` has."""
    rows = {flag.name: flag for flag in flags.rows}
    parts = [_HEAD]
    for title, names in _GROUPS.items():
        lines = "".join(_entry(rows[name]) for name in names if name in rows)
        parts.append(f"{title}:\n{lines}")
    parts.append(
        f"`core serve --help-all` shows all {len(rows)} flags, which are those of core-serve.\n"
        "A flag takes its value as --flag=value or --flag value."
    )
    return "\n".join(parts)


def _entry(flag: Flag) -> str:
    head = f"  --{flag.name} {flag.form.metavar}".rstrip()
    unset = not flag.form.metavar or flag.default in ("", None, [], {})
    text = flag.help if unset else f"{flag.help} Default: {shown(flag.default)}."
    lines = textwrap.wrap(text, _WIDTH, initial_indent=" " * 6, subsequent_indent=" " * 6)
    return "\n".join([head, *lines, ""])
