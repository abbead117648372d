"""Forms: parse the text of a flag into its value.

A Form parses one text, and merges the values of a repeated flag. Errors are UsageError with Triton's texts,
which scripts know.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

_TRUE = ("true", "on", "1")
_FALSE = ("false", "off", "0")


class UsageError(Exception):
    """Raised for an invalid command line; the text is for the user."""


def _last(_: Any, new: Any) -> Any:
    return new


@dataclass(frozen=True)
class Form:
    """The form of a flag's value.

    metavar   placeholder of the value in --help; "" for a flag without a value
    read      (flag, text) → value; raises UsageError
    merge     (value so far, new value) → value; by default the last value wins
    repeats   whether a repeated flag adds to its value
    """

    metavar: str
    read: Callable[[str, str], Any]
    merge: Callable[[Any, Any], Any] = _last

    @property
    def repeats(self) -> bool:
        return self.merge is not _last


# One value ----------------------------------------------------------------------


def bad_value(flag: str, reason: str) -> UsageError:
    """Return the error for an invalid value of a flag."""
    return UsageError(f'Bad option: "--{flag}".\n{reason}')


def is_bool(text: str) -> bool:
    """Return whether the text is one that `read_bool` accepts."""
    return text.lower() in _TRUE + _FALSE


def read_bool(flag: str, text: str) -> bool:
    """Return a bool: true, on, 1 or false, off, 0; upper or lower case. Raises UsageError."""
    if text.lower() in _TRUE:
        return True
    if text.lower() in _FALSE:
        return False
    raise bad_value(flag, f"invalid value for bool option: {text}")


def read_int(flag: str, text: str) -> int:
    if re.fullmatch(r"[+-]?[0-9]{1,19}", text) is None:
        raise bad_value(flag, f"Invalid option value. Got {text}")
    return int(text)


def read_float(flag: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise bad_value(flag, f"Invalid option value. Got {text}") from None


def _read_verbosity(flag: str, text: str) -> int:
    """Return an integer; a boolean text gives 1 or 0. Raises UsageError."""
    return int(read_bool(flag, text)) if is_bool(text) else read_int(flag, text)


STRING = Form("<string>", lambda flag, text: text)
BOOL = Form("<boolean>", read_bool)
SWITCH = Form("", lambda flag, text: not text or read_bool(flag, text))
FLOAT = Form("<float>", read_float)
VERBOSITY = Form("<integer>", _read_verbosity)


def integer(least: int = 0, most: int | None = None) -> Form:
    """Return the form of an integer from `least` to `most`; None: no upper bound."""

    def read(flag: str, text: str) -> int:
        value = read_int(flag, text)
        if value < least or (most is not None and value > most):
            limits = f"at least {least}" if most is None else f"from {least} to {most}"
            raise bad_value(flag, f"Invalid option value. Got {text}, the value must be {limits}")
        return value

    return Form("<integer>", read)


PORT = integer(0, 65535)


def choice(*allowed: str) -> Form:
    """Return the form of one of the `allowed` words."""

    def read(flag: str, text: str) -> str:
        if text not in allowed:
            raise bad_value(
                flag, f"invalid argument for --{flag}: '{text}' is none of {', '.join(allowed)}"
            )
        return text

    return Form("<string>", read)


# Values that add up ---------------------------------------------------------------


NAMES = Form("<string>", lambda flag, text: text, lambda names, new: sorted({*names, new}))


def _nested(so_far: dict[str, Any], new: tuple[str, Any, Any]) -> dict[str, Any]:
    owner, key, value = new
    return {**so_far, owner: {**so_far.get(owner, {}), key: value}}


def settings(owner: str, *, owner_needed: bool = False) -> Form:
    """Return the form `<owner>,<setting>=<value>` of {owner: {setting: value}}; without an owner under ""."""

    def read(flag: str, text: str) -> tuple[str, str, str]:
        head, equals, value = text.partition("=")
        name, comma, key = head.rpartition(",")
        bare = "" if owner_needed else " or <setting>=<value>"
        if (comma and not name) or (owner_needed and not comma):
            raise bad_value(
                flag,
                f"No {owner} specified. --{flag} option format is "
                f"<{owner} name>,<setting>=<value>{bare}. Got {text}",
            )
        if not equals or not key or not value:
            raise bad_value(
                flag, f"--{flag} option format is '<{owner} name>,<setting>=<value>'. Got {text}"
            )
        return name, key, value

    return Form(f"<{owner}>,<setting>=<value>", read, _nested)


def _read_setting(flag: str, text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not key or not equals or not value:
        raise bad_value(flag, f"--{flag} option format is <setting>=<value>. Got {text}")
    return key, value


def _add_entry(so_far: dict[Any, Any], new: tuple[Any, Any]) -> dict[Any, Any]:
    return {**so_far, new[0]: new[1]}


SETTING = Form("<setting>=<value>", _read_setting, _add_entry)

_TRACE_LEVELS = ("off", "false", "timestamps", "tensors", "min", "max", "true", "on")


def _read_trace(flag: str, text: str) -> tuple[str, tuple[str, str]]:
    head, equals, value = text.partition("=")
    mode, _, key = head.rpartition(",")
    if not equals or not key or not value:
        raise bad_value(
            flag, f"--{flag} option format is '<trace mode>,<setting>=<value>'. Got {text}"
        )
    if mode:
        return mode.lower(), (key, value)
    if key == "level" and value.lower() not in _TRACE_LEVELS:
        raise bad_value(f"{flag} level", f"invalid value for trace level option: {value.lower()}")
    if key in ("rate", "count"):
        read_int(f"{flag} {key}", value)
    return "", (key, value.lower() if key == "mode" else value)


def _add_trace(so_far: dict[str, Any], new: tuple[str, tuple[str, str]]) -> dict[str, Any]:
    return {**so_far, new[0]: [*so_far.get(new[0], []), new[1]]}


TRACE = Form("<mode>,<setting>=<value>", _read_trace, _add_trace)


def not_a_pair(flag: str, form: str, text: str) -> UsageError:
    """Return the error for a text that is not a pair of that form."""
    return bad_value(
        flag,
        "Cannot parse pair option due to incorrect number of inputs."
        f"--<pair option> argument requires format {form}. Found: {text}",
    )


def device_pair(metavar: str, read_value: Callable[[str, str], Any]) -> Form:
    """Return the form `<device>:<value>` of {device: value}; the last value of a device wins."""

    def read(flag: str, text: str) -> tuple[int, Any]:
        device, colon, value = text.partition(":")
        if not colon:
            raise not_a_pair(flag, "<first>:<second>", text)
        return read_int(flag, device), read_value(flag, value)

    return Form(f"<integer>:{metavar}", read, _add_entry)


def _read_resource(flag: str, text: str) -> tuple[str, int, int]:
    name, *numbers = text.split(":")
    if len(numbers) not in (1, 2):
        raise bad_value(
            flag,
            f"--{flag} option format is '<resource_name>:<count>:<device>' or "
            f"'<resource_name>:<count>'. Got {text}",
        )
    count = read_int(flag, numbers[0])
    device = read_int(flag, numbers[1]) if len(numbers) == 2 else -1
    return name.lower(), device, count


RESOURCES = Form("<name>:<count>[:<device>]", _read_resource, _nested)
