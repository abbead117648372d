"""Dependencies between ensembles and their steps. Pure functions over name → names of steps."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from graphlib import CycleError, TopologicalSorter

Steps = Mapping[str, Iterable[str]]


def circular(steps: Steps) -> dict[str, list[str]]:
    """Return the models of cycles, each with its cycle: ["a", "b", "a"]; of cycles that overlap, only one."""
    remaining = {name: set(needed) for name, needed in steps.items()}
    found: dict[str, list[str]] = {}
    while True:
        try:
            TopologicalSorter(remaining).prepare()
        except CycleError as error:
            way = error.args[1][:0:-1]  # each before what it needs; the first is not repeated
            for index, name in enumerate(way):
                found[name] = [*way[index:], *way[:index], name]
                remaining[name] = set()
        else:
            return found


def users_of(names: Iterable[str], steps: Steps) -> list[str]:
    """Return the other models that need one of `names`, directly or not; each before the models it needs."""
    reached = set(names)
    while new := [n for n, needed in steps.items() if n not in reached and reached & set(needed)]:
        reached.update(new)
    return [name for name in _users_first(steps) if name in reached - set(names)]


def needed_by(name: str, steps: Steps) -> list[str]:
    """Return the other models that `name` needs, directly or not; each before the models it needs."""
    reached: set[str] = set()
    waiting = [name]
    while waiting:
        new = set(steps.get(waiting.pop(), ())) - reached
        reached |= new
        waiting.extend(new)
    return [step for step in _users_first(steps) if step in reached - {name}]


def _users_first(steps: Steps) -> list[str]:
    broken = circular(steps)
    order = TopologicalSorter({n: () if n in broken else needed for n, needed in steps.items()})
    return list(order.static_order())[::-1]
