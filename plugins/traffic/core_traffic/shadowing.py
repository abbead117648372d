"""Shadowing: which requests are copied to another version, and how answers are compared. Pure values.

field `shadow` of Traffic ─► [Shadowing] ─► Shadow, Comparison
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from core_traffic.comparison import Comparison, Tolerance
from core_traffic.fields import Fields

_FIELDS = ("version", "share", "in_flight", "timeout_ms", "atol", "rtol", "outputs")
_OF_OUTPUT = ("atol", "rtol", "class")
_MOST_OUTPUTS = 256


@dataclass(frozen=True)
class Shadowing:
    """The field `shadow` of the settings of one model.

    version      that gets the copies
    share        of the requests that are copied, from 0 to 1
    in_flight    most copies at once, in one process
    timeout_ms   after which a copy is cancelled
    """

    version: int
    share: float
    in_flight: int
    timeout_ms: float
    comparison: Comparison

    def as_json(self) -> dict[str, Any]:
        common, outputs = self.comparison.common, self.comparison.outputs
        found: dict[str, Any] = {
            "version": self.version,
            "share": self.share,
            "in_flight": self.in_flight,
            "timeout_ms": self.timeout_ms,
            "atol": common.atol,
            "rtol": common.rtol,
        }
        if outputs is not None:
            found["outputs"] = {name: _as_json(each) for name, each in outputs.items()}
        return found

    @classmethod
    def read(cls, root: str, value: Any) -> Shadowing:
        """Return the settings in a JSON value. Raises CoreError(INVALID)."""
        fields = Fields(root, "shadow", value, _FIELDS)
        share = fields.number("share", 1, 0, 1)
        if not share:
            raise fields.expected("share", "a number above 0, to 1; to end it, leave out 'shadow'")
        common = _tolerance(fields, Tolerance())
        return cls(
            fields.version("version"),
            share,
            fields.whole("in_flight", 16, 1, 10_000),
            fields.number("timeout_ms", 10_000, 1, 3_600_000),
            Comparison(common, _outputs(fields, common)),
        )


def _outputs(fields: Fields, common: Tolerance) -> Mapping[str, Tolerance] | None:
    given = fields.values.get("outputs")
    if given is None:
        return None
    if isinstance(given, list) and all(isinstance(name, str) for name in given):
        given = {name: {} for name in given}
    if not isinstance(given, Mapping) or not 1 <= len(given) <= _MOST_OUTPUTS:
        what = f'1 to {_MOST_OUTPUTS} names, or an object such as {{"scores": {{"atol": 0.01}}}}'
        raise fields.expected("outputs", what)
    found = {}
    for name, value in given.items():
        own = Fields(fields.root, f"shadow.outputs.{name}", value, _OF_OUTPUT)
        by_class = own.values.get("class", False)
        if not isinstance(by_class, bool):
            raise own.expected("class", "true or false")
        if by_class and len(own.values) > 1:
            raise own.wrong("has class and a tolerance; classes are equal or not")
        found[name] = Tolerance(0, 0, True) if by_class else _tolerance(own, common)
    return found


def _tolerance(fields: Fields, default: Tolerance) -> Tolerance:
    most = 1e300
    return Tolerance(
        fields.number("atol", default.atol, 0, most), fields.number("rtol", default.rtol, 0, most)
    )


def _as_json(tolerance: Tolerance) -> dict[str, Any]:
    if tolerance.by_class:
        return {"class": True}
    return {"atol": tolerance.atol, "rtol": tolerance.rtol}
