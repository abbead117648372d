"""Worker: one process of several that serve as one, from its settings to its exit status.

supervisor ─► [work] ─► core.process.serve, with the role of a worker.  A worker that replaces another one
opens its ports last: no connection reaches it before it has run the changes of the ledger.
"""

from __future__ import annotations

import contextlib
import signal
import socket
import sys
from collections.abc import Awaitable
from typing import TYPE_CHECKING

from core import plugins
from core.errors import CoreError
from core.options import Options, parse
from core.process import OnlyProcess, run_on_loop, serve
from core.telemetry import log
from core_workers.channel import open_channel
from core_workers.member import Member
from core_workers.process import Settings
from core_workers.tables import TablesOfWorker
from frontends.shared import inherited_sockets

if TYPE_CHECKING:
    from core.server import InferenceServer


class Worker(OnlyProcess):
    """What a server does otherwise if it is one of several workers.

    It ends at SIGTERM, or when the supervisor says so, but not at SIGINT. The supervisor notifies the service
    manager, and prints the error of a worker that cannot serve.

    member        its side of the channel to the supervisor
    replacement   True if it replaces a worker that has ended, while the others serve
    """

    signals = (signal.SIGTERM,)

    def __init__(self, member: Member, replacement: bool):
        self.exchange = self._member = member
        self.end = member.end
        self.last = replacement

    async def load(self, work: Awaitable[None]) -> None:
        await self._member.starting(work)
        self._member.started()

    def loaded(self, server: InferenceServer) -> None:
        if self._member.number == 1 and not self.last:  # one table for all workers
            super().loaded(server)

    async def admitted(self) -> None:
        await self._member.admitted.wait()

    def ready(self) -> None:
        if self.last:
            self._member.opened()

    def stopping(self) -> None:
        pass

    def reloading(self) -> contextlib.AbstractContextManager[None]:
        return contextlib.nullcontext()

    def failed(self, error: CoreError) -> None:
        self._member.failed(error)


def work(settings: str) -> int:
    """Serve as one of several workers until the supervisor ends this one; return the exit status.

    The command line that the supervisor makes calls it; the arguments of the process are the server's.
    settings   text of Settings
    """
    mine = Settings.of(settings)
    for address, files in mine.listening.items():
        inherited_sockets.inherit(address, files)
    # The supervisor has warned of deprecated flags.
    options = parse(sys.argv[1:], plugins.flags(), warn=lambda _: None).changed(**mine.ports)
    screen = plugins.ask("core_open_log", options=options, worker=mine.number)
    log.configure(options, console=screen)
    return run_on_loop(_work(options, mine))


async def _work(options: Options, mine: Settings) -> int:
    end = socket.socket(fileno=mine.channel)
    end.set_inheritable(False)
    tables = TablesOfWorker(mine.tables, options.workers, mine.number - 1)
    member = Member(await open_channel(end), mine.number, options.workers, mine.operation, tables)
    try:
        status = await serve(options, Worker(member, mine.replacement))
    finally:
        await member.close()
    return 1 if member.orphaned else status
