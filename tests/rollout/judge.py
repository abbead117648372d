"""What must hold in the phases of a rollout."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

LEAST_RATE = 0.95  # of the rate that was asked for: below it, nothing is shown at that rate
LEAST_OF_STEP = 0.5  # of its requests: those on the way as weights change do not count
MOST_Z = 4.0  # standard deviations: a sound run passes it once in 16,000 steps
MOST_DROPPED = 0.05  # of the requests: copies that were not made, since too many were under way
_COUNTS = ("equal", "differing", "error", "dropped", "skipped")


@dataclass
class Found:
    """The result of a run. `problems` is empty if everything held."""

    problems: list[str] = field(default_factory=list)
    facts: dict[str, str] = field(default_factory=dict)

    def must(self, holds: bool, text: str) -> None:
        if not holds:
            self.problems.append(text)


def judge_rate(found: Found, name: str, rate: float, asked: float) -> None:
    """Check that a phase had the load that was asked for, in requests per second."""
    least = LEAST_RATE * asked
    found.must(rate >= least, f"{name}: {rate:.0f} requests a second, below {least:.0f}")


def judge_share(found: Found, name: str, count: int, total: int, share: float, due: float) -> None:
    """Check that a version got its share of the requests of a step, within binomial bounds.

    count   answers of the version, of `total`
    share   its weight, from 0 to 1
    due     requests that were due in the step
    """
    deviation = math.sqrt(total * share * (1 - share))
    off = count - total * share
    z = off / deviation if deviation else (0.0 if not off else math.inf)
    found.facts[name] = f"{count} of {total} answers, z {z:+.2f}"
    found.must(abs(z) <= MOST_Z, f"{name}: z is {z:+.2f}, at most {MOST_Z:g}")
    least = LEAST_OF_STEP * due
    found.must(total >= least, f"{name}: {total} answers, below {least:.0f}")


def judge_failures(
    found: Found, name: str, failures: Sequence[str], planted: str | None = None
) -> None:
    """Check that no request has failed, other than with the error of the version that fails by design."""
    others = [each for each in failures if planted is None or planted not in each]
    found.must(not others, f"{name}: {len(others)} failed: {others[:3]}")


def judge_copies(
    found: Found, name: str, counts: Mapping[str, int], answers: int, expected: str
) -> None:
    """Check that copies were made of almost all requests, and that all of them came out as expected."""
    dropped = counts["dropped"]
    most = int(MOST_DROPPED * answers)
    found.must(dropped <= most, f"{name}: {dropped} dropped, expected {most} at most")
    copied = answers - dropped
    found.must(
        counts[expected] == copied, f"{name}: {sums_of(counts)}, expected {copied} {expected}"
    )


def sums_of(counts: Mapping[str, int]) -> str:
    """Return the counts of copies as text."""
    return ", ".join(f"{counts[each]} {each}" for each in _COUNTS)
