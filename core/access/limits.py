"""How much a caller may do: so many requests a second, so many at a time."""

from __future__ import annotations

from collections import OrderedDict
from collections.abc import Callable
from dataclasses import dataclass

from core.errors import Exhausted

Clock = Callable[[], float]

MOST_CALLERS = 10_000  # that are remembered at a time


@dataclass(frozen=True)
class Limits:
    """0 stands for no limit.

    rate         requests a second, over a long time
    burst        requests at once after a pause; at least 1, and as many as `rate` if not said
    concurrent   requests at a time
    """

    rate: float = 0.0
    burst: float = 0.0
    concurrent: int = 0

    def __bool__(self) -> bool:
        return self.rate > 0 or self.concurrent > 0

    @property
    def depth(self) -> float:
        """Requests that a full bucket holds."""
        return max(1.0, self.burst or self.rate)


class Allowance:
    """What one caller has used of its limits: a bucket of tokens that fills with time, and a count.

    clock   seconds that only grow
    """

    def __init__(self, caller: str, limits: Limits, clock: Clock):
        self._caller = caller
        self._limits = limits
        self._clock = clock
        self._tokens = limits.depth
        self._filled_s = clock()
        self._inside = 0

    @property
    def idle(self) -> bool:
        """Whether a new one would be the same."""
        self._fill()
        return not self._inside and (not self._limits.rate or self._tokens >= self._limits.depth)

    def enter(self) -> None:
        """A request begins; `leave` must follow once. Raises Exhausted, and takes nothing then."""
        most = self._limits.concurrent
        if most and self._inside >= most:
            raise Exhausted(
                f"{self._caller} has {self._inside} requests in flight, its limit is {most}", 1.0
            )
        self.take()
        self._inside += 1

    def take(self) -> None:
        """One more request of a call that has entered. Raises Exhausted, and takes nothing then."""
        rate = self._limits.rate
        if not rate:
            return
        self._fill()
        if self._tokens < 1.0:
            raise Exhausted(
                f"{self._caller} has sent more than its limit of {rate:g} requests a second",
                (1.0 - self._tokens) / rate,
            )
        self._tokens -= 1.0

    def leave(self) -> None:
        self._inside -= 1

    def _fill(self) -> None:
        now_s = self._clock()
        more = (now_s - self._filled_s) * self._limits.rate
        self._tokens = min(self._limits.depth, self._tokens + more)
        self._filled_s = now_s


class Allowances:
    """The allowance of each caller; of those that have been idle for long nothing is remembered."""

    def __init__(self, clock: Clock, most: int = MOST_CALLERS):
        self._clock = clock
        self._most = most
        self._found: OrderedDict[tuple[str, Limits], Allowance] = OrderedDict()

    def of(self, caller: str, limits: Limits) -> Allowance | None:
        """The one of a caller, who has these limits; None for one without any."""
        if not limits:
            return None
        found = self._found.get((caller, limits))
        if found is None:
            if len(self._found) >= self._most:
                self._forget()
            found = self._found[caller, limits] = Allowance(caller, limits, self._clock)
        else:
            self._found.move_to_end((caller, limits))
        return found

    def _forget(self) -> None:
        """Make room: the oldest of the idle ones, or else the oldest, goes."""
        # Only a few are looked at: an attacker with many addresses must not make this slow.
        oldest = [key for key, _ in zip(self._found, range(64), strict=False)]
        for key in oldest:
            if self._found[key].idle:
                del self._found[key]
                return
        del self._found[oldest[0]]
