"""Readiness that says no before a drain and while the server is overloaded.

drain.py      --drain-file
overload.py   --overload-wait-secs
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import core
from core.errors import invalid

if TYPE_CHECKING:
    from core.options import Flags, Options
    from core.server import InferenceServer


@core.hookimpl
def core_add_options(parser: Flags) -> None:
    parser.add(
        "drain-file",
        "",
        "The server says that it is not ready while this file exists, if it is newer than the server; it "
        "goes on serving. Make it before you end the server.",
    )
    parser.add(
        "overload-wait-secs",
        0.0,
        "The server says that it is not ready while a new request of a model would wait longer, and until "
        "it would wait less than half of that. 0: never.",
    )


@core.hookimpl
def core_workers_starting(options: Options) -> None:
    """Remember when the server starts: a worker that starts again in a drain is not ready either."""
    if options.added.get("drain_file"):
        from core_readiness.drain import workers_start

        workers_start()


@core.hookimpl
def core_server_starting(server: InferenceServer) -> None:
    """Give the options to the readiness of all frontends. Raises CoreError(INVALID) for a wait below 0."""
    file = str(server.options.added.get("drain_file", ""))
    wait_s = float(server.options.added.get("overload_wait_secs", 0.0))
    if not wait_s >= 0:
        raise invalid(
            f"--overload-wait-secs is {wait_s:g}, it must be 0 or more seconds, such as 0.5"
        )
    if not file and not wait_s:
        return
    from core_readiness.drain import DrainFile, start_ns
    from core_readiness.overload import Limit, Overload, WaitControl
    from frontends.shared.readiness import Readiness

    if file:
        Readiness.of(server).add(DrainFile(file, start_ns()).reason)
    if wait_s:
        control = WaitControl(server.models, Limit(wait_s))
        server.control.add(control)
        Readiness.of(server).add(Overload(wait_s, control.excess_s).reason)
