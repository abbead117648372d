"""LimitedRunners: the runners of one pool that share resources with those of other pools.

pool ─► [LimitedRunners] ─► RateLimiter.
"""

from __future__ import annotations

from collections.abc import Callable

from core.pipeline.instances.rate_limiter import LimitedInstance, RateLimiter
from core.pipeline.instances.runner import InstanceRunner


class LimitedRunners:
    """The runners of one pool, as the rate limiter knows them.

    Not thread-safe: call from the event loop only.

    wake      called when a runner may execute
    is_idle   returns whether a runner is idle
    """

    def __init__(
        self,
        limiter: RateLimiter,
        wake: Callable[[], None],
        is_idle: Callable[[InstanceRunner], bool],
    ):
        self._limiter = limiter
        self._wake = wake
        self._is_idle = is_idle
        self._limited: dict[InstanceRunner, LimitedInstance] = {}

    def register(self, runner: InstanceRunner) -> None:
        """Register a runner that will serve.

        Raise CoreError(INVALID) if it demands more resources than the rate limiter has.
        """

        def wake() -> None:
            self._wake()
            if self._is_idle(runner):
                self._limiter.release(limited)

        limited = self._limited[runner] = self._limiter.register(runner.spec.demand, wake)

    def unregister(self, runner: InstanceRunner) -> None:
        """Remove a runner that closes. Without effect for one that is not registered."""
        if (limited := self._limited.pop(runner, None)) is not None:
            self._limiter.unregister(limited)

    def acquire(self, runner: InstanceRunner) -> bool:
        """Return whether a runner may execute now. If not, `wake` is called when it may."""
        return self._limiter.acquire(self._limited[runner])

    def release(self, runner: InstanceRunner) -> None:
        """Free the resources of a runner that has nothing to execute."""
        self._limiter.release(self._limited[runner])

    def executed(self, runner: InstanceRunner) -> None:
        """Free the resources of an execution that has ended. Call `grant` next, as in RateLimiter."""
        if (limited := self._limited.get(runner)) is not None:
            self._limiter.executed(limited)

    def grant(self) -> None:
        """Wake the runners, of any pool, that may execute now."""
        self._limiter.grant()
