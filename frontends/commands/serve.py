"""`core serve PATH…`: runs the server with repositories, folders of models and files of models.

    command line ─► [main] ─► paths ─► served ─┐
                        └───► flags ───────────┴─► core.serve.main

`core serve` has the flags of `core-serve`, and a few of its own (ServeOptions). It prints for a person: a
short --help on stdout, and one line on stderr for a wrong command line.
"""

from __future__ import annotations

import argparse
import os
import sys
from collections.abc import Sequence, Set
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from core import plugins
from core.hookspecs import hookimpl
from core.options import Flags, HelpWanted, Section, UsageError, group, parse, usage
from core.options.command_line import pairs
from core.options.section import flags_of
from core.options.values import SWITCH
from frontends import terminal
from frontends.commands import version
from frontends.commands.serve_help import short_help

if TYPE_CHECKING:
    from core.lifecycle import ModelVersion

summary = "serve a model repository, the folder of a model, or a file"

USAGE = 2
"""Exit status for a wrong command line."""

_FOR_PEOPLE = {"terminal": "auto", "allow-console": "auto"}
_FOR_DEVELOPMENT = {
    "model-control-mode": "poll",
    "repository-poll-secs": "1",
    "exit-on-error": "false",
}

_own = group("core serve")


@dataclass(kw_only=True)
class ServeOptions(Section):
    """The flags that only `core serve` has."""

    # fmt: off
    dev: bool = _own(SWITCH, False,
        "For development: look for changed models every second, keep serving when a model fails, and "
        "answer with tracebacks.")
    trust: bool = _own(SWITCH, False,
        "Read files that can hold code, such as pickles: anyone who could write such a file can run "
        "commands with your rights.")
    help_all: bool = _own(SWITCH, False, "Print all flags.")
    version: bool = _own(SWITCH, False, "Print the version.")
    # fmt: on


_OWN = {flag.name: flag for flag in flags_of(ServeOptions)}


def main(arguments: Sequence[str]) -> int:
    """Serve until a signal comes, or print help, all flags or the version; return the exit status.

    For a wrong command line, print the reason to stderr and return USAGE. Raises CoreError for a PATH that
    `served` refuses.
    """
    flags = plugins.flags()
    flags.add_section(ServeOptions)
    try:
        return _main(arguments, flags)
    except HelpWanted:
        print(short_help(flags))
        return 0
    except UsageError as error:
        # Triton's texts have several lines.
        print(f"error: {' '.join(str(error).split())}; see `core serve --help`", file=sys.stderr)
        return USAGE


def _main(arguments: Sequence[str], flags: Flags) -> int:
    if "-h" in arguments:
        raise HelpWanted
    paths: list[str] = []
    given = list(pairs(arguments, flags, paths))
    own = {name: _OWN[name].form.read(name, text) for name, text in given if name in _OWN}
    if own.get("help-all"):
        print(usage(flags, "core serve PATH…"), end="")
        return 0
    if own.get("version"):
        return version.run(argparse.Namespace())
    if own.get("dev"):
        os.environ["CORE_TRACEBACKS"] = "1"  # for workers too
    passed = [_argument(name, text, flags) for name, text in given if name not in _OWN]
    passed += _defaults({name for name, _ in given}, flags, dev=own.get("dev", False))
    options = parse(passed, flags, warn=lambda text: None)  # the server warns
    if not paths and not options.model_repository:
        raise UsageError("no PATH: give a model repository, the folder of a model, or a file")
    # Imported here: --help and errors do not need them.
    from core.serve import main as serve
    from frontends.commands.paths import served

    with served(paths, trust=own.get("trust", False)) as found:
        if found.files:
            terminal.names[found.repositories[-1]] = ", ".join(map(str, found.files.values()))
        failures = _FailedModels()
        plugins.hooks().register(failures, "core serve")
        try:
            status = serve(
                [*passed, *(f"--model-repository={each}" for each in found.repositories)]
            )
        finally:
            plugins.hooks().unregister(failures)
    if status:
        _advise([found.files[name] for name in sorted(failures.names & found.files.keys())])
    return status


def _argument(name: str, text: str, flags: Flags) -> str:
    """Return a flag as one argument: --name=text, or --name alone for a switch without a text."""
    switches = {flag.name for flag in flags.rows if flag.form is SWITCH}
    return f"--{name}" if name in switches and not text else f"--{name}={text}"


def _defaults(given: Set[str], flags: Flags, *, dev: bool) -> list[str]:
    """Return the arguments that `core serve` adds: its own defaults for flags that are not in `given`.

    dev   whether --dev is set: it adds those in _FOR_DEVELOPMENT
    Flags that no installed distribution has are left out.
    """
    known = {flag.name for flag in flags.rows}
    wanted = {**_FOR_PEOPLE, **(_FOR_DEVELOPMENT if dev else {})}
    return [f"--{name}={text}" for name, text in wanted.items() if name in known - given]


class _FailedModels:
    """A plugin that collects the names of models of which a version failed to load."""

    def __init__(self) -> None:
        self.names: set[str] = set()

    @hookimpl
    def core_model_changed(self, model: ModelVersion, state: str) -> None:
        if state == "failed":
            self.names.add(model.name)


def _advise(files: Sequence[Path]) -> None:
    """Print to stderr, for each file, the `core init` command that makes a model with a config.pbtxt from it.

    files   those whose model failed to load; the server has ended
    """
    for file in files:
        print(
            f"'{file}' was served without a config.pbtxt; if the error asks for one: "
            f"core init models {file}",
            file=sys.stderr,
        )
