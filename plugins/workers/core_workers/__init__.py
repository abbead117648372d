"""Several processes that serve as one: `--workers=N`.

    supervisor ─► worker 1 (event loop, models, frontends)    clients ─► the kernel ─► the port of any worker
        │     └─► worker 2 (event loop, models, frontends)
        └── a channel to each: all workers run an operation that one of them receives

docs/operate/workers.md is the page for users.
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
