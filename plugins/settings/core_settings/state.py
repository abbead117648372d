"""State: the live settings of one model, with their history. It does not change; a change makes a new one."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from datetime import datetime, timezone
from typing import Any

from core.errors import CoreError, not_found
from core_settings.live import Settings

KEPT = 100
"""Entries of a history; older ones are dropped."""


@dataclass(frozen=True)
class State:
    """The settings of a model after a number of changes.

    number     of the last change; 0 without one
    settings   what takes precedence over the configuration file
    history    the last changes, the newest last: {"number", "time", "caller", "operation", "changes",
               "settings"}, the settings after the change
    """

    number: int = 0
    settings: Settings = field(default_factory=dict)
    history: Sequence[Mapping[str, Any]] = ()

    def after(
        self, settings: Settings, operation: str, caller: str, changes: Mapping[str, Any]
    ) -> State:
        """Return the state after a change."""
        number = self.number + 1
        entry = {
            "number": number,
            "time": datetime.now(timezone.utc).isoformat(timespec="milliseconds"),
            "caller": caller,
            "operation": operation,
            "changes": changes,
            "settings": settings,
        }
        return State(number, settings, (*self.history, entry)[-KEPT:])

    @property
    def as_written(self) -> State:
        """The same with the settings of its last change, which a person may have edited in the file."""
        entry = self._entry(self.number)
        return self if entry is None else replace(self, settings=entry["settings"])

    def knows(self, other: State) -> bool:
        """Return whether `other` is this state or an earlier one, unedited. Without a number it is not."""
        if not 1 <= other.number <= self.number:
            return False
        entry = self._entry(other.number)
        return entry is None or entry["settings"] == other.settings

    def settings_of(self, model: str, number: int) -> Settings:
        """Return the settings after an earlier change; 0: those of the file. Raises CoreError(NOT_FOUND)."""
        if number == 0:
            return {}
        entry = self._entry(number)
        if entry is None:
            raise self._without(model, number)
        found: Settings = entry["settings"]
        return found

    def _entry(self, number: int) -> Mapping[str, Any] | None:
        return next((each for each in self.history if each["number"] == number), None)

    def _without(self, model: str, number: int) -> CoreError:
        known = "0"
        if self.history:
            first = self.history[0]["number"]
            known = f"0, {first} to {self.number}" if first < self.number else f"0, {first}"
        return not_found(f"settings of model '{model}' have no number {number}; there are: {known}")

    def as_json(self) -> dict[str, Any]:
        """Return the state as a JSON object that `of` accepts."""
        return {
            "number": self.number,
            "settings": self.settings,
            "history": list(self.history),
        }

    @classmethod
    def of(cls, value: Mapping[str, Any]) -> State:
        """Return the state in a JSON object that `as_json` has made."""
        return cls(value["number"], value["settings"], tuple(value["history"]))
