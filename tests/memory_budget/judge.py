"""What must hold in a soak. Each function notes facts, and a problem for what does not hold."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from memory_budget.clients import DEAD, LEFT
from memory_budget.disturber import KILLS, LOADS
from memory_budget.lru import hit_rate
from memory_budget.steady import Answers

TOLERANCE = 0.01  # of the budget, or these bytes: heaps of the server itself, and the requests
TOLERANCE_BYTES = 16 << 20
MOST_APART_S = 5.0  # of two samples of the memory; a busy machine has gaps of two seconds
LEAST_SAMPLES = 0.8  # of those that are due, in a long soak
HIT_RATE_TOLERANCE = 0.05
P99_RATIO = 1.1  # of the pinned model, while others load, to that alone
LEAST_TIMES = 500  # requests for the pinned model, alone and while others load
LONG_S = 60.0  # a soak of this time has every kind of disturbance


@dataclass
class Found:
    """The result of a soak. `problems` is empty if everything held."""

    results: Counter[str] = field(default_factory=Counter)
    problems: list[str] = field(default_factory=list)
    facts: dict[str, str] = field(default_factory=dict)

    def must(self, holds: bool, text: str) -> None:
        if not holds:
            self.problems.append(text)


def judge_requests(found: Found, failures: Sequence[str], most_dead: int) -> None:
    """Check that requests fail only with a killed process, and at most `most_dead` of them."""
    found.must(not failures, f"{len(failures)} requests failed, such as {failures[:3]}")
    dead = found.results[DEAD]
    found.must(
        dead <= most_dead, f"{dead} requests were with a killed process, at most {most_dead} may be"
    )


def judge_disturbances(
    found: Found,
    done: Mapping[str, int],
    failures: Sequence[str],
    error: Exception | None,
    *,
    seconds: float,
    kills: bool,
) -> None:
    """Check that the disturbances went on to the end, and in a long soak that no kind is missing.

    done       kind → how often
    failures   of loads; each killed process may have made one of them fail
    error      what has ended the disturbances
    kills      whether there are processes to kill
    """
    found.facts["disturbances"] = ", ".join(f"{count} {what}" for what, count in done.items())
    found.must(error is None, f"the disturbances ended early: {type(error).__name__}: {error}")
    found.must(
        len(failures) <= done.get(KILLS, 0),
        f"{len(failures)} loads by an operator failed, such as {failures[:3]}",
    )
    if seconds < LONG_S:
        return
    counts = {LOADS: done.get(LOADS, 0), f"requests that were {LEFT}": found.results[LEFT]}
    if kills:
        counts[KILLS] = done.get(KILLS, 0)
    for what, count in counts.items():
        found.must(count > 0, f"no {what} in {seconds:g} s: the soak shows nothing about them")


def judge_hit_rate(
    found: Found,
    trace: Sequence[tuple[str, bool]],
    loads: float,
    sizes: Mapping[str, int],
    budget: int,
) -> None:
    """Compare the hit rate with that of an LRU that knows all sizes.

    trace   model, and whether a request uses it
    loads   on request
    """
    found.must(loads > 0, "the metrics show no load on request")
    online = 1 - loads / sum(by_request for _, by_request in trace)
    offline = hit_rate(trace, sizes, budget)
    relative = f" ({online / offline:.1%} of it)" if offline else ""
    found.facts["hit rate"] = f"{online:.3f}, of an offline LRU {offline:.3f}{relative}"
    found.must(
        online >= offline - HIT_RATE_TOLERANCE,
        f"the hit rate is {online:.3f}, an offline LRU has {offline:.3f}",
    )


def judge_memory(
    found: Found,
    samples: Sequence[int],
    longest_s: float,
    budget: int,
    models: int,
    *,
    due: int,
    seconds: float,
) -> None:
    """Compare what the kernel counted with the budget, and in a long soak the number of samples with `due`.

    longest_s   between two samples
    models      bytes of all of them
    """
    most = max(samples, default=0)
    found.facts["memory"] = (
        f"at most {_mib(most)} in {len(samples)} samples of {due}, at most {longest_s:.2f} s apart; "
        f"budget {_mib(budget)}, all models {_mib(models)}"
    )
    found.must(most > 0, "no sample of the memory is above what the server took before")
    found.must(
        most <= budget + max(TOLERANCE * budget, TOLERANCE_BYTES),
        f"the kernel counts {_mib(most)}, the budget is {_mib(budget)}",
    )
    found.must(
        longest_s <= MOST_APART_S,
        f"two samples of the memory are {longest_s:.1f} s apart, at most {MOST_APART_S:g} s may be: nobody "
        "saw it in between",
    )
    least = LEAST_SAMPLES * due if seconds >= LONG_S else 0
    found.must(
        len(samples) >= least,
        f"{len(samples)} samples of the memory, expected {least:.0f} at least: {LEAST_SAMPLES:.0%} of {due}",
    )


def judge_pinned(
    found: Found, answers: Answers, moments: Sequence[float], *, compared: bool
) -> None:
    """Compare the pinned model while others load, and alone.

    moments   of: first quiet time, its end and the first load, the last load, second quiet time, its end
    """
    begins, loads, ends, again, last = moments
    found.problems += answers.failures[:5]
    alone = answers.between(begins, loads) + answers.between(again, last)
    beside = answers.between(loads, ends)
    found.facts["the pinned model alone"] = _latencies(alone)
    found.facts["the pinned model under loads"] = _latencies(beside)
    if not compared:
        return
    if min(len(alone), len(beside)) < LEAST_TIMES:
        found.problems.append(f"fewer than {LEAST_TIMES} requests for the pinned model: no p99")
        return
    ratio = float(np.percentile(beside, 99) / np.percentile(alone, 99))
    found.facts["the p99 of the pinned model"] = f"{ratio:.2f} times that alone"
    found.must(ratio <= P99_RATIO, f"loads of others make the p99 {ratio:.2f} times as long")


def _latencies(seconds: Sequence[float]) -> str:
    if not seconds:
        return "no requests"
    median, p99 = np.percentile(seconds, [50, 99]) * 1e3
    return f"median {median:.2f} ms, p99 {p99:.2f} ms in {len(seconds)} requests"


def _mib(size: int) -> str:
    return f"{size / 2**20:.0f} MiB"
