"""The console for a person: --terminal=auto or always.

    log records, states of models ─► [Screen] ─► lines on stderr
    core.process ─► [TerminalProcess] ─► the addresses of a server that is ready, and its end

rich is imported only if the console is for a person.
"""

from __future__ import annotations

import logging
from typing import TYPE_CHECKING

from core.hookspecs import hookimpl
from frontends.terminal.options import TerminalOptions

if TYPE_CHECKING:
    from core.lifecycle import ModelVersion
    from core.options import Options
    from frontends.terminal.screen import Screen

names: dict[str, str] = {}
"""Location of a repository that `core serve` has made → what the user has named instead."""

_screen: Screen | None = None  # of this process


@hookimpl
def core_open_log(options: Options, worker: int) -> logging.Handler | None:
    """Return a new Screen, which the other hooks use too, if the console is for a person; else None."""
    global _screen
    section = TerminalOptions.of(options)
    if not section.is_readable:
        return None
    from frontends.terminal.screen import Screen

    _screen = Screen(options, worker, colours=section.has_colours)
    return _screen


@hookimpl(trylast=True)  # several workers have roles of their own
def core_run_server(options: Options) -> int | None:
    """Run the server with a role that reports to a person, and return its exit status.

    Return None, so that another plugin or core runs the server, if the console is not for a person or the
    server has several workers.
    """
    if _screen is None or options.workers > 1:
        return None
    from frontends.terminal.process import run

    places = [names.get(each, each) for each in options.model_repository]
    return run(options, _screen, places)


@hookimpl
def core_model_changed(model: ModelVersion, state: str) -> None:
    """Tell the screen the new state of a version, if the console is for a person."""
    if _screen is not None:
        _screen.changed(model, state)
