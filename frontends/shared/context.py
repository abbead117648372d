"""FrontendContext: the access policy, the access log, the observers and the watched files of one server.

options ─► [FrontendContext] ─► every frontend of the server.  The first `context_of(server)` creates it.
"""

from __future__ import annotations

import asyncio

from core.server import InferenceServer
from frontends.shared.access import AccessPolicy
from frontends.shared.access.caller_names import CallerNames
from frontends.shared.access_log import AccessLog
from frontends.shared.call_observers import CallObservers
from frontends.shared.options import SharedOptions
from frontends.shared.watched_files import WatchedFiles


class FrontendContext:
    """The state that the frontends of one server share. Loop thread only."""

    def __init__(self, server: InferenceServer):
        """Raises CoreError for unusable options, tokens or keys, and an access log that cannot be opened."""
        options = self.options = SharedOptions.of(server.options)
        self.files = WatchedFiles(options.reload_secs)  # certificates, tokens and keys
        # None: every caller may do everything.
        self.policy = AccessPolicy.of(options, lambda: server.shared_table("limits"))
        if self.policy is not None:
            self.policy.watch(self.files)
        self.access_log = AccessLog.of(options)  # gets a line for every request
        self.observers = CallObservers.of(server)
        self.names = CallerNames.of(server)
        server.on_reload(self.reload)

    def reload(self) -> None:
        """Read all watched files again, and open the access log again, if there is one."""
        self.files.look(True)
        if self.access_log is not None:
            self.access_log.reopen()

    async def close(self) -> None:
        """Stop watching files, and write the last lines of the access log. The server calls it at its end."""
        self.files.close()
        if self.access_log is not None:
            await asyncio.get_running_loop().run_in_executor(None, self.access_log.close)


def context_of(server: InferenceServer) -> FrontendContext:
    """Return the context of a server; the first call creates it and may raise CoreError."""
    return server.shared(FrontendContext)
