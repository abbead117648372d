"""The rate limiter: instances of all models compete for resources before they execute.

batcher ─► pool ─► [RateLimiter] ─► worker.  With --rate-limit=execution_count an instance that has
work is staged; the one with the fewest executions, weighted by its priority, goes first, as soon as
everything it needs is free. Source of the rules: ModelRateLimiter in Triton's model_config.proto and
its rate limiter.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field

from core.config.messages import ModelInstanceGroup
from core.errors import invalid

GLOBAL = -1  # in place of a device: the resource is there once for all devices

Key = tuple[str, int]  # name in lower case, device or GLOBAL


@dataclass(frozen=True)
class Demand:
    """What one execution of an instance takes, and how it ranks.

    priority   an instance of priority n gets one turn for every n of an instance of priority 1
    of         whose it is, for errors
    """

    resources: Mapping[Key, int]
    priority: int = 1
    of: str = field(default="", compare=False)


class Turn:
    """One instance at the limiter. Written by the limiter only.

    wake   called when the instance may go; it then calls `RateLimiter.take` or lets it pass
    """

    __slots__ = ("demand", "executions", "granted", "order", "staged", "wake")

    def __init__(self, demand: Demand, order: int, wake: Callable[[], None]):
        self.demand = demand
        self.order = order
        self.wake = wake
        self.executions = 0
        self.staged = False
        self.granted = False

    @property
    def rank(self) -> tuple[int, int]:
        return (self.executions * self.demand.priority, self.order)


class RateLimiter:
    """One for the whole server. Loop thread only.

    given   what --rate-limit-resource says: name → device (GLOBAL for all) → count. If it says
            anything, there is nothing of what it does not name; if not, there is as much of a resource
            as the largest demand for it

    Invariant: for every resource, what granted turns demand is at most what there is.
    """

    def __init__(self, given: Mapping[str, Mapping[int, int]]):
        self._given = {name.lower(): dict(counts) for name, counts in given.items()}
        self._largest: dict[Key, list[int]] = {}  # demands of every registered turn
        self._used: dict[Key, int] = {}
        self._staged: list[Turn] = []
        self._orders = itertools.count()

    def register(self, demand: Demand, wake: Callable[[], None]) -> Turn:
        """A turn for a new instance.

        Raises CoreError(INVALID) if it demands more than there is, or a resource for each device that
        another demands for all together, or the other way round.
        """
        for key, count in demand.resources.items():
            self._check_kind(key, demand)
            self._check_count(key, count, demand)
        for key, count in demand.resources.items():
            self._largest.setdefault(key, []).append(count)
        return Turn(demand, next(self._orders), wake)

    def _check_kind(self, key: Key, demand: Demand) -> None:
        name, device = key
        known = [*demand.resources, *(key for key, counts in self._largest.items() if counts)]
        if any(other == name and (at == GLOBAL) != (device == GLOBAL) for other, at in known):
            raise invalid(
                f'Resource "{name}" is present as both global and device-specific resource in the '
                f"model configuration of {demand.of}"
            )

    def _check_count(self, key: Key, count: int, demand: Demand) -> None:
        limit = self._explicit(*key)
        if limit is not None and count > limit:
            raise invalid(
                f'Resource count for "{key[0]}" is limited to {limit} which will prevent scheduling '
                f"of one or more model instances, the minimum required count is {count} for "
                f"{demand.of}"
                + ("" if key[0] in self._given else "; --rate-limit-resource does not name it")
            )

    def forget(self, turn: Turn) -> None:
        """The instance is gone."""
        if turn.staged:
            self._staged.remove(turn)
            turn.staged = False
        if turn.granted:
            self._give_back(turn)
        for key, count in turn.demand.resources.items():
            self._largest[key].remove(count)
        self._grant()

    def take(self, turn: Turn) -> bool:
        """Whether the instance may execute now; if not, it is staged and woken when it may."""
        if turn.granted:
            return True
        if not turn.staged:
            turn.staged = True
            self._staged.append(turn)
        self._grant(asking=turn)
        return turn.granted

    def executed(self, turn: Turn) -> None:
        """The execution is over: its resources are free again.

        `settle` must follow, when the instance has had the time to ask for its next turn.
        """
        turn.executions += 1
        if turn.granted:
            self._give_back(turn)

    def settle(self) -> None:
        """Let go whoever may go now."""
        self._grant()

    def let_pass(self, turn: Turn) -> None:
        """The instance has nothing to execute after all."""
        if turn.granted:
            self._give_back(turn)
            self._grant()

    def _grant(self, asking: Turn | None = None) -> None:
        """Let staged turns go, first the lowest rank; the first that must wait makes all wait.

        Else a small demand could overtake a large one for ever.
        """
        woken = []
        self._staged.sort(key=lambda turn: turn.rank)
        while self._staged and self._fits(self._staged[0].demand):
            turn = self._staged.pop(0)
            turn.staged, turn.granted = False, True
            for key, count in turn.demand.resources.items():
                self._used[key] = self._used.get(key, 0) + count
            if turn is not asking:
                woken.append(turn)
        for turn in woken:
            turn.wake()

    def _fits(self, demand: Demand) -> bool:
        return all(
            self._used.get(key, 0) + count <= self._available(key)
            for key, count in demand.resources.items()
        )

    def _give_back(self, turn: Turn) -> None:
        turn.granted = False
        for key, count in turn.demand.resources.items():
            self._used[key] -= count

    def _available(self, key: Key) -> int:
        limit = self._explicit(*key)
        return max(self._largest.get(key, [0]), default=0) if limit is None else limit

    def _explicit(self, name: str, device: int) -> int | None:
        """How much the options give, None where they say nothing about any resource."""
        if not self._given:
            return None
        counts = self._given.get(name, {})
        if device == GLOBAL:  # one count for all devices, whichever they were given for
            return max(counts.values(), default=0)
        return counts.get(device, counts.get(GLOBAL, 0))


def demand_of(group: ModelInstanceGroup, device: int, model: str = "") -> Demand:
    """What the instances of a group of a model demand on one device."""
    limiter = group.rate_limiter
    return Demand(
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
