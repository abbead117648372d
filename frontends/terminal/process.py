"""The role of the only process of a server for a person at a terminal.

core.process.serve ─► [TerminalProcess] ─► Screen
"""

from __future__ import annotations

import time
from collections.abc import Sequence
from typing import TYPE_CHECKING

from core.process import OnlyProcess, run_on_loop, serve
from core.version import __version__
from frontends.terminal.summary import places, summary, to_try

if TYPE_CHECKING:
    from core.errors import CoreError
    from core.options import Options
    from core.server import InferenceServer
    from frontends.terminal.screen import Screen


def run(options: Options, screen: Screen, repositories: Sequence[str]) -> int:
    """Serve until a signal comes, and report start and end on the screen; return the exit status.

    repositories   where the models come from, in the user's words
    """
    screen.say(f"core {__version__} loads models from {', '.join(repositories)}")
    role = TerminalProcess(screen)
    status = run_on_loop(serve(options, role))
    role.ended(status)
    return status


class TerminalProcess(OnlyProcess):
    """The role of a server with one process that shows its start, readiness, errors and end on a Screen."""

    def __init__(self, screen: Screen):
        super().__init__()
        self._screen = screen
        self._server: InferenceServer | None = None
        self._signalled_s = 0.0

    def loaded(self, server: InferenceServer) -> None:
        super().loaded(server)
        self._server = server

    def ready(self) -> None:
        super().ready()
        if self._server is not None:
            server, ports = self._server, self._screen.ports
            found = [*places(server.options, ports), *to_try(server, ports)]
            self._screen.ready(summary(server, ports), found)

    def signalled(self, number: int) -> None:
        self._signalled_s = time.monotonic()
        self._screen.ending()
        self._screen.say("")  # a terminal shows ^C at the beginning of the line
        self._screen.say("stopping: running requests are finished; Ctrl-C again ends at once")

    def failed(self, error: CoreError) -> None:
        self._screen.ending()
        self._screen.error(f"creating server: {error.kind.title} - {error.message}")

    def ended(self, status: int) -> None:
        """Show how many seconds the end took, if a signal has ended the server and `status` is 0."""
        if self._signalled_s and status == 0:
            self._screen.say(f"ended after {time.monotonic() - self._signalled_s:.1f} s")
