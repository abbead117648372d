"""Selection: which calls are recorded."""

from __future__ import annotations

import random
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, fields
from fnmatch import fnmatchcase
from typing import Any

from core.errors import invalid
from core_capture.options import CaptureOptions


@dataclass(frozen=True)
class Selection:
    """Which calls are recorded, and whether their answers are.

    rate         share of the calls, chosen at random
    models       patterns of their names; none: all
    callers      patterns of the names of identified callers; none: all, also unidentified ones
    latency_ms   least duration
    errors       only calls that failed
    answers      whether answers are recorded
    """

    rate: float = 1.0
    models: Sequence[str] = ()
    callers: Sequence[str] = ()
    latency_ms: float = 0
    errors: bool = False
    answers: bool = False

    @classmethod
    def of(cls, options: CaptureOptions) -> Selection:
        return cls(
            options.capture_rate,
            tuple(options.capture_model),
            tuple(options.capture_caller),
            options.capture_latency_ms,
            options.capture_errors,
            options.capture_answers,
        )

    def changed(self, more: Mapping[str, Any]) -> Selection:
        """Return a selection with other values of some fields. Raises CoreError(INVALID) for wrong ones."""
        known = {each.name: getattr(self, each.name) for each in fields(self)}
        for name, value in more.items():
            known[name] = _checked(name, value)
        return Selection(**known)

    def begins(self, caller: str) -> bool:
        """Return whether a call may be recorded, as far as its beginning tells."""
        if self.callers and not matches(caller, self.callers):
            return False
        return self.rate >= 1 or random.random() < self.rate

    def takes_model(self, model: str) -> bool:
        """Return whether calls of a model are recorded. "" is no model: only a selection of all takes it."""
        return not self.models or matches(model, self.models)

    def ends(self, duration_ns: int, failed: bool) -> bool:
        """Return whether a call is recorded that has ended."""
        return (failed or not self.errors) and duration_ns >= self.latency_ms * 1e6


def matches(name: str, patterns: Sequence[str]) -> bool:
    """Return whether a name fits one of the patterns, in which * stands for any text."""
    return any(fnmatchcase(name, each) for each in patterns)


def _checked(name: str, value: Any) -> Any:
    if name in ("models", "callers"):
        if not isinstance(value, list | tuple) or not all(isinstance(each, str) for each in value):
            raise invalid(f"'{name}' is {value!r}, expected a list of names")
        return tuple(value)
    if name in ("errors", "answers"):
        if not isinstance(value, bool):
            raise invalid(f"'{name}' is {value!r}, expected true or false")
        return value
    if isinstance(value, bool) or not isinstance(value, int | float):
        raise invalid(f"'{name}' is {value!r}, expected a number")
    if name == "rate" and not 0 < value <= 1:
        raise invalid(f"'rate' is {value}, expected a number above 0, up to 1")
    if value < 0:
        raise invalid(f"'{name}' is {value}, expected a number from 0 on")
    return value
