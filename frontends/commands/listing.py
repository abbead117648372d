"""`core help`: a line for each command. `core` without arguments and `core --help` are the same."""

from __future__ import annotations

import argparse

from core import plugins
from core.errors import CoreError
from core.plugins.extras import missing_commands

summary = "list the commands"


def arguments(parser: argparse.ArgumentParser) -> None:
    """Declare no arguments."""


def run(namespace: argparse.Namespace) -> int:
    """Print the summary of each command, or why it cannot be imported."""
    rows = [(name, _summary(plugin)) for name, plugin in plugins.available_commands().items()]
    width = max(len(name) for name, _ in rows)
    print("usage: core COMMAND …\n")
    print("\n".join(f"  {name:{width}}  {text}" for name, text in rows))
    print("\n`core COMMAND --help` shows the arguments of a command.")
    if missing_commands():
        print(f"Some commands are not installed{plugins.install_hint('commands')}")
    return 0


def _summary(plugin: plugins.Plugin) -> str:
    try:
        return str(plugin.load().summary)
    except CoreError as error:
        return error.message
