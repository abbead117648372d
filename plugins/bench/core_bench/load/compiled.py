"""CompiledGenerator: Loops of compiled code, one for each thread."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

from core_bench.load.plan import WirePlan
from core_bench.native.engine import Loop, Tally


class CompiledGenerator:
    """See Generator. Its connections stay open between calls of `run`.

    give_up_s   a round ends if the server has refused all connections for so long
    drain_s     answers are waited for so long after a round
    """

    def __init__(self, plan: WirePlan, threads: int, give_up_s: float, drain_s: float):
        self._loops = [Loop(each) for each in plan.split(threads)]
        self._give_up_ns, self._drain_ns = round(give_up_s * 1e9), round(drain_s * 1e9)

    def run(self, settle_s: float, measure_s: float, at_least: int) -> tuple[Tally, bool]:
        share = -(-at_least // len(self._loops))
        times = (round(settle_s * 1e9), round(measure_s * 1e9), self._drain_ns, self._give_up_ns)
        if len(self._loops) == 1:
            return self._loops[0].run(*times, share)
        with ThreadPoolExecutor(len(self._loops)) as threads:
            found = list(threads.map(lambda loop: loop.run(*times, share), self._loops))
        tally, alive = found[0]
        for other, other_alive in found[1:]:
            tally.merge(other)
            alive = alive and other_alive
        return tally, alive

    def stop(self) -> None:
        for each in self._loops:
            each.stop()

    @property
    def progress(self) -> tuple[int, int]:
        found = [each.progress for each in self._loops]
        return sum(right for right, _ in found), sum(wrong for _, wrong in found)
