"""What happens to the server during a soak, and when: the same for the same seed.

Each line: what (a coroutine of that name in `changes` or `visitors`), and how many seconds lie between two
of it, give or take a half.
"""

from __future__ import annotations

import random
from dataclasses import dataclass

PLAN = (
    # changes of the server
    ("reload", 3.0),  # a file is newer: another load of the same model, beside the old one
    ("reload_a_step", 5.0),  # of an ensemble
    ("reload_sequences", 11.0),
    ("switch_versions", 4.0),  # 1 → 2 → 3 → 1 …, each leaves when the next one serves
    ("change_instances", 4.0),
    (
        "override",
        5.0,
    ),  # a load with other configuration and files, and back to the repository's
    ("unload", 6.0),  # and load again
    ("kill_a_worker", 1.5),  # the process of a Python model
    ("renew_certificate", 10.0),
    # clients
    ("fill_the_queue", 3.0),
    ("leave", 0.7),  # a client that goes in one of the phases of a request
    ("cancel", 0.7),  # a call or a stream of gRPC
    ("send_slowly", 2.0),
    ("read_slowly", 4.0),
    ("look", 1.0),  # index, statistics, metrics, health
)


@dataclass(frozen=True)
class Step:
    """`name` happens `at_s` seconds after the beginning."""

    at_s: float
    name: str


def plan(seed: int, seconds: float) -> list[Step]:
    """Everything that happens in that time, in order."""
    chosen = random.Random(seed)
    steps = []
    for name, between_s in PLAN:
        at_s = between_s * chosen.uniform(0.2, 1.0)
        while at_s < seconds:
            steps.append(Step(at_s, name))
            at_s += between_s * chosen.uniform(0.5, 1.5)
    return sorted(steps, key=lambda step: step.at_s)
