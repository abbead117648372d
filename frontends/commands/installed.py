"""`core plugins`: the installed backends, frontends, plugins and commands, and whether each of them works."""

from __future__ import annotations

import argparse
import sys
from collections.abc import Mapping

from core import plugins
from core.errors import CoreError
from core.options import Flags
from core.plugins.calls import register
from frontends.commands.formats import claims
from frontends.commands.version import versions

Row = tuple[str, str, str]
"""Name, distribution, and OK or the error."""

OK = "ok"

summary = "list the installed backends, frontends, plugins and commands"


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare no arguments, only the last line of the help."""
    parser.epilog = "The exit status is 1 if one of them does not work."


def run(namespace: argparse.Namespace) -> int:
    """Print the versions, what is installed, and the files that identify a backend.

    Return 0 if everything that is installed works, else 1.
    """
    print(versions())
    flags = Flags()
    lists = {
        "backends": _imported(plugins.available_backends()),
        "frontends": _imported(plugins.frontends()),
        "plugins": [_registered(each, flags) for each in plugins.with_hooks().values()],
        "commands": _imported(plugins.available_commands()),
    }
    for title, rows in lists.items():
        print(f"\n{title}:\n  {_lines(rows)}")
    print(f"\nfiles that identify a backend:\n  {_lines(claims())}")
    failed = [name for rows in lists.values() for name, _, state in rows if state != OK]
    if failed:
        print(f"\nerror: {', '.join(failed)}: see above", file=sys.stderr)
    return 1 if failed else 0


def _imported(installed: Mapping[str, plugins.Plugin]) -> list[Row]:
    return [(name, each.distribution, _state(each)) for name, each in installed.items()]


def _state(plugin: plugins.Plugin) -> str:
    try:
        plugin.load()
    except CoreError as error:
        return error.message
    return OK


def _registered(plugin: plugins.Plugin, flags: Flags) -> Row:
    """Import a plugin, register its hooks and let it add its flags to `flags`, as a server does.

    Return its Row, which has the text of the first error instead of OK if one of these steps fails.
    """
    manager, state = plugins.hooks(), OK
    try:
        module = plugin.load()
        register(module, plugin.name)
        others = [each for each in manager.get_plugins() if each is not module]
        manager.subset_hook_caller("core_add_options", others)(parser=flags)
    except Exception as error:  # a plugin may raise anything
        state = " ".join(str(error).split()) or type(error).__name__
    return plugin.name, plugin.distribution, state


def _lines(rows: list[Row]) -> str:
    widths = [max((len(row[i]) for row in rows), default=0) for i in range(2)]
    lines = [f"{name:{widths[0]}}  {owner:{widths[1]}}  {text}" for name, owner, text in rows]
    return "\n  ".join(lines or ["none"])
