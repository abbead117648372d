"""python -m core: list the installed parts, or run a command.

    python -m core              list backends, frontends, plugins and commands; exit status 0 if all of them
                                can be imported, else 1
    python -m core COMMAND …    run a command; `python -m core COMMAND --help` shows its arguments

Entry points name the commands (core/plugins/commands.py). `python -m core.serve` is the server.
"""

from __future__ import annotations

import platform
import sys
from collections.abc import Sequence

import core
from core import plugins
from core.errors import CoreError
from core.native.callbacks import ABI_VERSION
from core.plugins.commands import run_command

Row = tuple[str, str, str]


def main(arguments: Sequence[str] = ()) -> int:
    """Run the command of the arguments, or list the installed parts; return the exit status."""
    if not arguments:
        return _installed()
    if arguments[0] in ("-h", "--help"):
        print(f"usage: python -m core [COMMAND …]\n\ncommands:\n  {_lines(_commands())}")
        return 0
    return run_command(arguments[0], arguments[1:])


def _installed() -> int:
    """Print versions and installed parts; return 0 if all can be imported, else 1."""
    print(f"core {core.__version__}, backend ABI {ABI_VERSION}, Python {platform.python_version()}")
    healthy = True
    for title, installed in {
        "backends": plugins.available_backends(),
        "frontends": plugins.frontends(),
        "plugins": plugins.with_hooks(),
    }.items():
        rows = [(name, plugin.distribution, _health(plugin)) for name, plugin in installed.items()]
        healthy &= all(health == "ok" for *_, health in rows)
        print(f"\n{title}:\n  {_lines(rows)}")
    print(f"\ncommands:\n  {_lines(_commands())}")
    healthy &= all(_health(each) == "ok" for each in plugins.available_commands().values())
    return 0 if healthy else 1


def _commands() -> list[Row]:
    """Return name, distribution and summary of each command; the error of one that cannot be imported."""
    return [
        (
            name,
            plugin.distribution,
            health if (health := _health(plugin)) != "ok" else plugin.load().summary,
        )
        for name, plugin in plugins.available_commands().items()
    ]


def _health(plugin: plugins.Plugin) -> str:
    try:
        plugin.load()
    except CoreError as error:
        return error.message
    return "ok"


def _lines(rows: Sequence[Row]) -> str:
    widths = [max((len(row[i]) for row in rows), default=0) for i in range(2)]
    lines = [f"{name:{widths[0]}}  {owner:{widths[1]}}  {text}" for name, owner, text in rows]
    return "\n  ".join(lines or ["none"])


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
