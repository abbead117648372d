"""RateLimiter: decides which instance may execute, when instances of all models share limited resources.

batcher ─► pool ─► [RateLimiter] ─► runner.  Used with --rate-limit=execution_count. Among the instances that
have work, the one with the fewest executions, weighted by its priority, goes first, as soon as its resources
are free.
Source of the rules: ModelRateLimiter in Triton's model_config.proto and its rate limiter.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Any

from core.config.messages import ModelInstanceGroup
from core.errors import CoreError, invalid

GLOBAL = -1  # instead of a device: all devices share the resource

Key = tuple[str, int]  # name in lower case, device or GLOBAL


@dataclass(frozen=True)
class ResourceDemand:
    """Resources that one execution of an instance needs, and the instance's priority.

    priority   an instance of priority n executes once for every n executions of an instance of priority 1
    of         name of the instance group and model, for error texts
    """

    resources: Mapping[Key, int]
    priority: int = 1
    of: str = field(default="", compare=False)


@dataclass(eq=False, slots=True)
class LimitedInstance:
    """State of one registered instance. Only RateLimiter writes it; see `RateLimiter.register`.

    held   the demand of the last execution that was granted
    """

    runner: Any
    demand: ResourceDemand
    order: int
    wake: Callable[[], None]
    is_idle: Callable[[Any], bool]
    held: ResourceDemand
    executions: int = 0
    staged: bool = False
    granted: bool = False

    @property
    def rank(self) -> tuple[int, int]:
        return (self.executions * self.demand.priority, self.order)


class RateLimiter:
    """Scheduler of executions across models; one for the whole server. It knows instances by their runners.

    given   --rate-limit-resource: name → device (GLOBAL for all) → count. If it is empty, each resource has
            as many units as the largest demand for it. If not, a resource that it does not name has none

    Invariant: the granted instances never hold more units of a resource than it had when they were granted.
    Not thread-safe: call from the event loop only.
    """

    def __init__(self, given: Mapping[str, Mapping[int, int]]):
        self._given = {name.lower(): dict(counts) for name, counts in given.items()}
        self._limited: dict[Any, LimitedInstance] = {}  # by runner
        self._largest: dict[Key, list[int]] = {}  # demands of all registered instances
        self._used: dict[Key, int] = {}
        self._staged: list[LimitedInstance] = []
        self._orders = itertools.count()

    def register(
        self,
        runner: Any,
        demand: ResourceDemand,
        wake: Callable[[], None],
        is_idle: Callable[[Any], bool],
    ) -> LimitedInstance:
        """Register the runner of a new instance, and return its state.

        wake      called when the instance may execute
        is_idle   returns whether a runner is idle; if it still is after `wake`, its resources are freed

        Raise CoreError(INVALID) if `demand` has more units than a resource has, or if it has a resource per
        device that another instance demands for all devices together, or the reverse.
        """
        self._add(demand)
        limited = LimitedInstance(runner, demand, next(self._orders), wake, is_idle, demand)
        self._limited[runner] = limited
        return limited

    def change(self, demands: Mapping[Any, ResourceDemand]) -> None:
        """Give registered instances other demands. What executes holds what it was granted until it ends.

        demands   runner → its demand; runners that are not registered are left out
        Raise what `register` raises; then nothing has changed.
        """
        changed = [
            (self._limited[each], demands[each]) for each in demands if each in self._limited
        ]
        for limited, _ in changed:
            self._subtract(limited.demand)
        added: list[ResourceDemand] = []
        try:
            for _, demand in changed:
                self._add(demand)
                added.append(demand)
        except CoreError:
            for demand in added:
                self._subtract(demand)
            for limited, _ in changed:
                self._add(limited.demand)
            raise
        for limited, demand in changed:
            limited.demand = demand
        self.grant()

    def _add(self, demand: ResourceDemand) -> None:
        for key, count in demand.resources.items():
            self._check_kind(key, demand)
            self._check_count(key, count, demand)
        for key, count in demand.resources.items():
            self._largest.setdefault(key, []).append(count)

    def _subtract(self, demand: ResourceDemand) -> None:
        for key, count in demand.resources.items():
            self._largest[key].remove(count)

    def _check_kind(self, key: Key, demand: ResourceDemand) -> None:
        name, device = key
        known = [*demand.resources, *(key for key, counts in self._largest.items() if counts)]
        if any(other == name and (at == GLOBAL) != (device == GLOBAL) for other, at in known):
            raise invalid(
                f'Resource "{name}" is present as both global and device-specific resource in the '
                f"model configuration of {demand.of}"
            )

    def _check_count(self, key: Key, count: int, demand: ResourceDemand) -> None:
        limit = self._explicit(*key)
        if limit is not None and count > limit:
            raise invalid(
                f'Resource count for "{key[0]}" is limited to {limit} which will prevent scheduling '
                f"of one or more model instances, the minimum required count is {count} for "
                f"{demand.of}"
                + ("" if key[0] in self._given else "; --rate-limit-resource does not name it")
            )

    def unregister(self, runner: Any) -> None:
        """Remove an instance that closes. Do nothing if it is not registered."""
        if (limited := self._limited.pop(runner, None)) is None:
            return
        if limited.staged:
            self._staged.remove(limited)
            limited.staged = False
        if limited.granted:
            self._free(limited)
        self._subtract(limited.demand)
        self.grant()

    def acquire(self, runner: Any) -> bool:
        """Take the resources of one execution. Return False if it must wait until `wake` is called."""
        limited = self._limited[runner]
        if limited.granted:
            return True
        if not limited.staged:
            limited.staged = True
            self._staged.append(limited)
        self.grant(asking=limited)
        return limited.granted

    def executed(self, runner: Any) -> None:
        """Free the resources of an execution that has ended.

        Call `grant` next, after the instance had the chance to acquire its next execution.
        """
        if (limited := self._limited.get(runner)) is not None:
            limited.executions += 1
            if limited.granted:
                self._free(limited)

    def release(self, runner: Any) -> None:
        """Free the resources of an instance that has nothing to execute."""
        self._release(self._limited[runner])

    def _release(self, limited: LimitedInstance) -> None:
        if limited.granted:
            self._free(limited)
            self.grant()

    def grant(self, asking: LimitedInstance | None = None) -> None:
        """Give waiting instances their resources and wake them, in the order of their ranks.

        Stop at the first that must wait; otherwise small demands could overtake a large one forever.

        asking   an instance that needs no call of `wake`, since its caller sees the result; or None
        """
        woken = []
        self._staged.sort(key=lambda limited: limited.rank)
        while self._staged and self._fits(self._staged[0].demand):
            limited = self._staged.pop(0)
            limited.staged, limited.granted, limited.held = False, True, limited.demand
            for key, count in limited.demand.resources.items():
                self._used[key] = self._used.get(key, 0) + count
            if limited is not asking:
                woken.append(limited)
        for limited in woken:
            limited.wake()
            if limited.is_idle(limited.runner):
                self._release(limited)

    def _fits(self, demand: ResourceDemand) -> bool:
        return all(
            self._used.get(key, 0) + count <= self._available(key)
            for key, count in demand.resources.items()
        )

    def _free(self, limited: LimitedInstance) -> None:
        limited.granted = False
        for key, count in limited.held.resources.items():
            self._used[key] -= count

    def _available(self, key: Key) -> int:
        limit = self._explicit(*key)
        return max(self._largest.get(key, [0]), default=0) if limit is None else limit

    def _explicit(self, name: str, device: int) -> int | None:
        """Return the units that --rate-limit-resource gives, 0 if it omits them; None without that option."""
        if not self._given:
            return None
        counts = self._given.get(name, {})
        if device == GLOBAL:  # one count for all devices, whichever they were given for
            return max(counts.values(), default=0)
        return counts.get(device, counts.get(GLOBAL, 0))


def demand_of(group: ModelInstanceGroup, device: int, model: str = "") -> ResourceDemand:
    """Return the demand of an instance of a group on one device."""
    limiter = group.rate_limiter
    return ResourceDemand(
        {
            (
                resource.name.lower(),
                GLOBAL if getattr(resource, "global") else device,
            ): resource.count
            for resource in limiter.resources
        },
        max(1, limiter.priority),
        f"instance group {group.name} of model {model}",
    )
