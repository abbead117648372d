"""Several processes that serve as one: `--workers=N`.

    supervisor ─► worker 1 (event loop, models, frontends)    clients ─► the kernel ─► the port of any worker
        │     └─► worker 2 (the same)
        └── a channel to each: an operation that one worker receives is done by all of them

supervisor.py   starts, restarts and ends the workers; it has no models, no frontends, no numpy
process.py      one worker as the supervisor sees it · delays.py  when it is started again ·
                ports.py  one port for all of them · checks.py  what they do not share
relay.py        operations of one worker, for all · exchange.py  which workers are asked and have answered ·
                operation.py  whether they agree · ledger.py  what a worker that starts later has to repeat
channel.py      messages between two processes · values.py  what is in them
worker.py       the process of a worker · member.py  its side of the channel, an Exchange of core.control ·
                tables.py  memory that all workers share

docs/workers.md is the page for users.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import core

if TYPE_CHECKING:
    from core.options import Options


@core.hookimpl
def core_run_server(options: Options, arguments: Sequence[str]) -> int | None:
    """Serve with --workers processes, if there is more than one; return the exit status."""
    if options.workers == 1:
        return None
    # Imported here: a server of one process needs no supervisor.
    from core_workers.supervisor import supervise

    return supervise(options, arguments)
