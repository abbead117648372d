"""TraceSettings: the settings of the trace extension, and their checks.

The Tracer applies them. Names and texts are those of Triton's trace extension, where every value is text.
"""

from __future__ import annotations

import logging
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from core.errors import invalid, unsupported
from core.options import Options

logger = logging.getLogger("core")

OFF = "OFF"
TIMESTAMPS = "TIMESTAMPS"
TENSORS = "TENSORS"
TRITON = "triton"

_LEVELS = (TIMESTAMPS, TENSORS)
_OLD_LEVELS = ("min", "max", "true", "on")  # of the command line; all mean TIMESTAMPS
_LARGEST_RATE = 2**32 - 1
_LARGEST_COUNT = 2**31 - 1


@dataclass(frozen=True)
class TraceSettings:
    """The settings of the server, or of a model.

    level           TIMESTAMPS, TENSORS or both, in this order; empty for OFF
    rate            one of `rate` requests is traced; 0 for only those with the context of their client
    count           maximum number of traces, -1 for no limit
    log_frequency   traces in each numbered file; 0 for one file, with a number only if `count` is reached
    file            path of the trace file, "" for no traces; only the command line sets it
    mode            TRITON, or a mode of a plugin
    shown           settings of the trace exporter by name; None for trace files
    """

    level: tuple[str, ...] = ()
    rate: int = 1000
    count: int = -1
    log_frequency: int = 0
    file: str = ""
    mode: str = TRITON
    shown: Mapping[str, str] | None = None

    @classmethod
    def of(cls, options: Options, shown: Mapping[str, str] | None = None) -> TraceSettings:
        """Return the settings of the command line; log unknown ones. Raises CoreError for a wrong number."""
        found: dict[str, Any] = {"shown": shown}
        levels: set[str] = set()
        for key, value in options.trace_config.get("", []):
            if key == "level":
                levels |= {TIMESTAMPS if value.lower() in _OLD_LEVELS else value.upper()}
            elif key == "mode":
                found["mode"] = value.lower()
            elif key in ("rate", "count"):
                found[key] = _PARSERS[f"trace_{key}"](f"trace_{key}", value)
            else:
                _no_effect(key)
        found["level"] = _ordered(levels)
        for key, value in options.trace_config.get(TRITON, []):
            if key == "file":
                found["file"] = value
            elif key == "log-frequency":
                found["log_frequency"] = _rate("log_frequency", value)
            else:
                _no_effect(f"{TRITON},{key}")
        return cls(**found)

    @property
    def may_trace(self) -> bool:
        """Return whether tracing is on: there is a level, and a file or an exporter."""
        return bool(self.level and (self.file or self.shown is not None))

    def check(self) -> None:
        """Raise CoreError(INVALID) for a level with rate 0, or without file and exporter."""
        if self.level and not (self.rate and self.may_trace):
            reason = "trace file name is not given" if self.rate else "sample rate must be non-zero"
            raise invalid(f"Attempting to set invalid trace setting :{reason}")

    def as_dict(self, remaining: int | None = None) -> dict[str, Any]:
        """Return the settings by their names in the protocol; trace_level is a list, the others are text.

        remaining   traces left of `count`, shown as trace_count; None shows `count`
        """
        shown: dict[str, Any] = {
            "trace_level": list(self.level) or [OFF],
            "trace_rate": str(self.rate),
            "trace_count": str(self.count if remaining is None else remaining),
        }
        if self.shown is None:
            shown |= {"log_frequency": str(self.log_frequency), "trace_file": self.file}
        return {**shown, "trace_mode": self.mode, **(self.shown or {})}


def parsed(changes: Mapping[str, Any]) -> dict[str, Any]:
    """Return the changes of a client as fields of TraceSettings; None clears a field.

    It skips unknown names and unknown levels, as Triton does. Raises CoreError(INVALID) for an invalid
    value, CoreError(UNSUPPORTED) for the trace file.
    """
    if "trace_file" in changes:
        raise unsupported("trace file location can not be updated through network protocol")
    return {
        key.removeprefix("trace_"): None if value is None else _PARSERS[key](key, value)
        for key, value in changes.items()
        if key in _PARSERS and not (key == "trace_level" and _names_no_level(value))
    }


def _names_no_level(value: Any) -> bool:
    """Return whether `value` is a list of unknown levels only, or empty; such a list changes nothing."""
    return isinstance(value, list) and all(
        isinstance(each, str) and each not in (OFF, *_LEVELS) for each in value
    )


def _level(key: str, value: Any) -> tuple[str, ...]:
    if not isinstance(value, list) or not all(isinstance(each, str) for each in value):
        raise invalid(f"expect a list of strings for '{key}', such as [\"{TIMESTAMPS}\"]")
    if OFF in value and len(value) > 1:
        raise invalid(f"Expect only one trace level '{OFF}' is specified")
    return _ordered(value)


def _rate(key: str, value: Any) -> int:
    return _in_range(key, value, 0, _LARGEST_RATE)


def _count(key: str, value: Any) -> int:
    if _integer(key, value) < -1:
        raise invalid(f"Unable to parse '{key}'. Expecting value >= -1, got:{value}")
    return _in_range(key, value, -1, _LARGEST_COUNT)


def _in_range(key: str, value: Any, least: int, most: int) -> int:
    number = _integer(key, value)
    if not least <= number <= most:
        raise invalid(
            f"Unable to parse '{key}', value is out of range [ {least}, {most} ], got: {value}"
        )
    return number


def _integer(key: str, value: Any) -> int:
    if not isinstance(value, str):
        raise invalid(f"expect a string for '{key}', such as \"1\", found {str(value)[:40]!r}")
    if not re.fullmatch(r"[+-]?[0-9]{1,19}", value):
        raise invalid(f"Unable to parse '{key}', got: {value[:40]}")
    return int(value)


def _ordered(levels: Any) -> tuple[str, ...]:
    return tuple(level for level in _LEVELS if level in levels)


def _no_effect(setting: str) -> None:
    logger.warning("--trace-config=%s has no effect: there is no such setting", setting)


_PARSERS: dict[str, Callable[[str, Any], Any]] = {
    "trace_level": _level,
    "trace_rate": _rate,
    "trace_count": _count,
    "log_frequency": _rate,
}
