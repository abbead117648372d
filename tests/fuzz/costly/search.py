"""The search: what was costly is changed a little, and kept where it becomes more costly."""

from __future__ import annotations

import random
import time
from dataclasses import dataclass, field

from .measure import Cost
from .recipe import Recipe, changed, drawn

MOST_MEMORY = 64 * 2**20
"""Bytes that a server may hold for requests beyond three times what was sent."""
MOST_STALL_S = 0.05
_KEPT = 8
_FRESH_SHARE = 0.3

# What was found to be costly once, in small: begin here.
KNOWN = [
    Recipe("http", "behind FP16", (b"[[]],",), 4_000_000),
    Recipe("http", "behind FP16", (b'{"":{}},',), 2_000_000),
    Recipe("http", "an unknown member", (b'"",1.5,',), 4_000_000),
    Recipe("http", "an unknown member", (b"[[]],", b"Inf,"), 2_000_000),
    Recipe("http", "data of FP32", (b"0,",), 16_000_000, connections=12, reads=False),
    Recipe("http", "data of FP32", (b"0,",), 30_000_000, connections=12),
    Recipe("http", "generate", (b"0,",), 2_000_000, packing=""),
    Recipe("http", "the index", (b"[[]],",), 4_000_000, packing=""),
    Recipe("grpc", "infer", (b"\x2a\x00",), 8_000_000),
    Recipe("grpc", "infer", (b"\x22\x00",), 8_000_000),
    Recipe("grpc", "settings of the log", (b"\x0a\x00",), 8_000_000),
    Recipe("grpc", "a load", (b"\x1a\x00",), 8_000_000),
    Recipe("grpc", "infer", (b"\x3a\x00",), 16_000_000),
]


@dataclass
class Worst:
    """The costliest recipes by one measure, the worst first.

    of   the compared measure: a cost → a number, larger is worse
    """

    of: object
    found: list[tuple[Recipe, Cost]] = field(default_factory=list)

    def add(self, recipe, cost):
        self.found.append((recipe, cost))
        self.found.sort(key=lambda each: -self.of(each[1]))
        del self.found[_KEPT:]


@dataclass
class Search:
    """The result of a search.

    memory, stall   the worst by memory beyond the request's size, and by the delay of others
    count           number of tried recipes
    """

    name: str
    memory: Worst = field(default_factory=lambda: Worst(lambda cost: cost.excess))
    stall: Worst = field(default_factory=lambda: Worst(lambda cost: cost.stall_s))
    count: int = 0

    def try_out(self, meter, recipe) -> Cost:
        cost = meter.cost(recipe)
        self.count += 1
        self.memory.add(recipe, cost)
        self.stall.add(recipe, cost)
        return cost

    @property
    def holds_too_much(self) -> bool:
        return self.memory.found[0][1].excess > MOST_MEMORY

    def rows(self):
        """Lines of a table: what was worst."""
        for what, worst in (("memory", self.memory), ("stall", self.stall)):
            recipe, cost = worst.found[0]
            yield (
                f"| {self.name} | {self.count} | {what} | {cost.sent / 1024:.1f} KiB | "
                f"{cost.memory / 2**20:.1f} MiB | {cost.stall_s * 1000:.0f} ms | "
                f"{cost.outcome or 'none'} | `{recipe}` |"
            )


HEADER = (
    "| server | tried | worst | sent | memory | others waited | answer | request |\n"
    "|---|---|---|---|---|---|---|---|"
)


def search(meter, name, protocol, seconds, seed) -> Search:
    """Try the known recipes, then changes of the worst, for so many seconds or until the server has ended."""
    chance, found = random.Random(seed), Search(name)
    for recipe in KNOWN:
        if recipe.protocol == protocol:
            found.try_out(meter, recipe)
    end = time.monotonic() + seconds
    while time.monotonic() < end and meter.alive:
        worst = chance.choice((found.memory, found.stall)).found
        if chance.random() < _FRESH_SHARE or not worst:
            recipe = drawn(chance, protocol)
        else:
            recipe = changed(chance, chance.choice(worst)[0])
        found.try_out(meter, recipe)
    return found
