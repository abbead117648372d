"""LogSettings: the settings of the log that clients can read and change at run time.

Plain values and their checks; core.telemetry.log puts them into effect.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from typing import Any

from core.errors import CoreError, invalid, unavailable, unsupported
from core.options import Options

DEFAULT = "default"
ISO8601 = "ISO8601"

_LARGEST_LEVEL = 2**32 - 1  # gRPC has 32 bits for it


@dataclass(frozen=True)
class LogSettings:
    """The settings of the logging extension, under their names in the protocol.

    log_file            path of the log file, "" for the console; only the command line sets it
    log_verbose_level   0 for no verbose messages
    log_format          DEFAULT or ISO8601
    """

    log_file: str = ""
    log_info: bool = True
    log_warning: bool = True
    log_error: bool = True
    log_verbose_level: int = 0
    log_format: str = DEFAULT

    @classmethod
    def of(cls, options: Options) -> LogSettings:
        """Return the settings of the command line."""
        same = ("log_file", "log_info", "log_warning", "log_error", "log_format")
        given = {name: getattr(options, name) for name in same}
        return cls(log_verbose_level=options.log_verbose, **given)

    def changed(self, changes: Mapping[str, Any]) -> LogSettings:
        """Return these settings with the changes of a client; None keeps a value.

        Raises CoreError for the first invalid change; then nothing changes.
        """
        wanted = {key: value for key, value in changes.items() if value is not None}
        for key, value in wanted.items():
            _check(key, value)
        return replace(self, **wanted)

    def as_dict(self) -> dict[str, Any]:
        return asdict(self)


_KINDS = {field.name: field.type for field in fields(LogSettings)}  # the types as text


def _check(key: str, value: Any) -> None:
    """Raise CoreError: UNSUPPORTED for log_file, UNAVAILABLE for an unknown format, else INVALID if bad."""
    if key not in _KINDS:
        raise invalid(f"unknown log setting '{key}'; there are {', '.join(_KINDS)}")
    if key == "log_file":
        raise unsupported("log file location can not be updated through network protocol")
    if _KINDS[key] == "bool" and type(value) is not bool:
        raise _expected("boolean", key, value)
    if key == "log_verbose_level" and (type(value) is not int or not 0 <= value <= _LARGEST_LEVEL):
        raise _expected("unsigned integer of 32 bits", key, value)
    if key == "log_format" and type(value) is not str:
        raise _expected("string", key, value)
    if key == "log_format" and value not in (DEFAULT, ISO8601):
        raise unavailable(f"invalid argument for --log_format, got: {value}")


def _expected(kind: str, key: str, value: Any) -> CoreError:
    return invalid(f"expect {kind} for '{key}', found {str(value)[:40]!r}")
