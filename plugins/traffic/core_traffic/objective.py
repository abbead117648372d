"""Objective: what a version must hold to keep its share, and the settings after it has not. Pure values.

report of all processes ─► [Objective] ─► why a version breaks it ─► [without] ─► settings for all processes
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

from core_traffic.fields import Fields

if TYPE_CHECKING:
    from core_traffic.settings import Traffic

_FIELDS = ("error_rate", "p99_ms", "min_requests", "window_s", "to")
_DEFAULT_REQUESTS = 20
_DEFAULT_WINDOW_S = 10.0
_MOST_MS = 3_600_000.0


@dataclass(frozen=True)
class Objective:
    """The objective of the versions of one model: the field `rollback` of its traffic.

    error_rate     largest share of errors, from 0 to 1; None for any
    p99_ms         largest p99 of the time until the first response; None for any
    min_requests   requests of a version in the window, without which nothing is decided
    window_s       length of the window
    to             version that gets the weight of a bad one and is never judged; None for all others, in
                   proportion
    """

    error_rate: float | None
    p99_ms: float | None
    min_requests: int = _DEFAULT_REQUESTS
    window_s: float = _DEFAULT_WINDOW_S
    to: int | None = None

    def broken(self, window: Mapping[str, Any]) -> str:
        """Return how a window breaks the objective, for people; "" if it holds.

        window   of a version in a report: requests, errors, error_rate, p99_ms. Their least number is not
                 checked here: see `enough`
        """
        rate, p99_ms = window["error_rate"], window["p99_ms"]
        if self.error_rate is not None and rate is not None and rate > self.error_rate:
            return (
                f"{window['errors']} of {window['requests']} requests failed in "
                f"{self.window_s:g} s, more than {100 * self.error_rate:g} %"
            )
        if self.p99_ms is not None and p99_ms is not None and p99_ms > self.p99_ms:
            return (
                f"the p99 of {window['requests']} requests in {self.window_s:g} s was "
                f"{p99_ms:.4g} ms, more than {self.p99_ms:g} ms"
            )
        return ""

    def enough(self, window: Mapping[str, Any]) -> bool:
        """Return whether a window has the requests that a decision needs."""
        return bool(window["requests"] >= self.min_requests)

    def as_json(self) -> dict[str, Any]:
        found = {name: getattr(self, name) for name in _FIELDS}
        return {name: value for name, value in found.items() if value is not None}

    @classmethod
    def read(cls, root: str, value: Any, weights: Collection[int]) -> Objective:
        """Return the objective in a JSON value. Raises CoreError(INVALID).

        weights   the versions that have a weight, 0 included
        """
        fields = Fields(root, "rollback", value, _FIELDS)
        if not {"error_rate", "p99_ms"} & fields.values.keys():
            raise fields.wrong("needs error_rate or p99_ms: what a version must hold")
        error_rate = p99_ms = to = None
        if "error_rate" in fields.values:
            error_rate = fields.number("error_rate", 0, 0, 1)
        if "p99_ms" in fields.values:
            p99_ms = fields.number("p99_ms", 0, 0.001, _MOST_MS)
        if "to" in fields.values and (to := fields.version("to")) not in weights:
            known = ", ".join(map(str, sorted(weights)))
            raise fields.of("to", f"is {to}, expected a version among the weights: {known}")
        return cls(
            error_rate,
            p99_ms,
            fields.whole("min_requests", _DEFAULT_REQUESTS, 1, 1_000_000_000),
            fields.number("window_s", _DEFAULT_WINDOW_S, 1, 3600),
            to,
        )


def judged(traffic: Traffic) -> set[int]:
    """Return the versions that the objective of the settings may take out; none without an objective."""
    if traffic.rollback is None:
        return set()
    weighted = {number for number, weight in traffic.weights.items() if weight}
    return (weighted | {rule.version for rule in traffic.rules}) - {traffic.rollback.to}


def without(traffic: Traffic, number: int, ready: Collection[int]) -> Traffic | None:
    """Return the settings in which a version gets nothing; None if no version that is ready had a weight.

    Its weight goes to the version `to` of the objective, else to the others in proportion. Rules that name it
    are dropped: their requests are shared like all others.
    """
    weights = dict(traffic.weights)
    moved = weights.get(number, 0.0)
    if number in weights:
        weights[number] = 0
    to = traffic.rollback.to if traffic.rollback is not None else None
    if to is not None:
        weights[to] += moved
    if not any(weights.get(each) for each in ready):
        return None
    rules = tuple(rule for rule in traffic.rules if rule.version != number)
    return replace(traffic, weights=weights, rules=rules)
