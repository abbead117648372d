"""run_on_thread: runs a round on a thread of its own, so that Ctrl-C and the progress work meanwhile."""

from __future__ import annotations

import threading
from collections.abc import Callable

from core_bench.load.plan import Generator
from core_bench.native.engine import Tally

_LOOK_S = 0.1  # between two calls of `look`


def run_on_thread(
    generator: Generator,
    settle_s: float,
    measure_s: float,
    at_least: int,
    look: Callable[[], None] = lambda: None,
) -> tuple[Tally, bool, bool]:
    """Return what was measured, False if the server was lost, and True after Ctrl-C, which ends the round.

    look   called several times a second on the calling thread
    Raises what the load generator raises.
    """
    found: list[tuple[Tally, bool]] = []
    failed: list[BaseException] = []
    done = threading.Event()
    interrupted = False

    def work() -> None:
        try:
            found.append(generator.run(settle_s, measure_s, at_least))
        except BaseException as error:
            failed.append(error)
        finally:
            done.set()

    # Not thread.join: Ctrl-C within it makes Python 3.11 take the thread for ended.
    threading.Thread(target=work, name="load", daemon=True).start()
    while not done.is_set():
        try:
            done.wait(_LOOK_S)
            look()
        except KeyboardInterrupt:
            interrupted = True
            generator.stop()
    if failed:
        raise failed[0]
    tally, alive = found[0]
    return tally, alive, interrupted
