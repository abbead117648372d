"""How the text of a flag becomes its value.

A Form reads one text and says how a repeated flag adds to what was there. Errors are UsageError with
the texts that scripts around Triton know.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

RESTRICTED_CATEGORIES = (
    "health",
    "metadata",
    "inference",
    "shared-memory",
    "model-config",
    "model-repository",
    "statistics",
    "trace",
    "logging",
)

_TRUE = ("true", "on", "1")
_FALSE = ("false", "off", "0")


class UsageError(Exception):
    """A command line that cannot be followed; the text is for the person who typed it."""


def _last(_: Any, new: Any) -> Any:
    return new


@dataclass(frozen=True)
class Form:
    """The form of a flag's value.

    metavar   what --help shows in the place of the value; "" for a flag that takes none
    read      (flag, text) → value; raises UsageError
    merge     (value so far, new value) → value, for flags that may be repeated
    repeats   whether a second use adds to the first
    """

    metavar: str
    read: Callable[[str, str], Any]
    merge: Callable[[Any, Any], Any] = _last

    @property
    def repeats(self) -> bool:
        return self.merge is not _last


# One value ----------------------------------------------------------------------


def _bad(flag: str, reason: str) -> UsageError:
    return UsageError(f'Bad option: "--{flag}".\n{reason}')


def read_bool(flag: str, text: str) -> bool:
    """true, on or 1; false, off or 0; in any case."""
    if text.lower() in _TRUE:
        return True
    if text.lower() in _FALSE:
        return False
    raise _bad(flag, f"invalid value for bool option: {text}")


def read_int(flag: str, text: str) -> int:
    if re.fullmatch(r"[+-]?[0-9]{1,19}", text) is None:
        raise _bad(flag, f"Invalid option value. Got {text}")
    return int(text)


def read_float(flag: str, text: str) -> float:
    try:
        return float(text)
    except ValueError:
        raise _bad(flag, f"Invalid option value. Got {text}") from None


def _read_verbosity(flag: str, text: str) -> int:
    """An integer, or a boolean for 1 and 0."""
    if text.lower() in _TRUE + _FALSE:
        return int(read_bool(flag, text))
    return read_int(flag, text)


def _read_pattern(flag: str, text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise _bad(flag, f"invalid regular expression '{text}': {error}") from None
    return text


def _read_amount(flag: str, text: str) -> float:
    value = read_float(flag, text)
    if not 0.0 <= value < 1e9:
        raise _bad(flag, f"Invalid option value. Got {text}, the value must be from 0 to 1e9")
    return value


STRING = Form("<string>", lambda flag, text: text)
BOOL = Form("<boolean>", read_bool)
SWITCH = Form("", lambda flag, text: True)
FLOAT = Form("<float>", read_float)
AMOUNT = Form("<float>", _read_amount)
VERBOSITY = Form("<integer>", _read_verbosity)
PATTERN = Form("<string>", _read_pattern)


def integer(least: int = 0, most: int | None = None) -> Form:
    """An integer from `least` to `most`."""

    def read(flag: str, text: str) -> int:
        value = read_int(flag, text)
        if value < least or (most is not None and value > most):
            limits = f"at least {least}" if most is None else f"from {least} to {most}"
            raise _bad(flag, f"Invalid option value. Got {text}, the value must be {limits}")
        return value

    return Form("<integer>", read)


PORT = integer(0, 65535)


def _read_mode(flag: str, text: str) -> str:
    if re.fullmatch(r"0?[0-7]{3}", text) is None:
        raise _bad(flag, f"Invalid option value. Got {text}; expected three octal digits: 0660")
    return text


MODE = Form("<octal>", _read_mode)  # permissions of a file, as chmod takes them


def choice(*allowed: str) -> Form:
    """One of some words."""

    def read(flag: str, text: str) -> str:
        if text not in allowed:
            raise _bad(
                flag, f"invalid argument for --{flag}: '{text}' is none of {', '.join(allowed)}"
            )
        return text

    return Form("<string>", read)


def _read_range(flag: str, text: str) -> tuple[int, int]:
    first, dash, second = text.partition("-")
    if not dash:
        raise _not_a_pair(flag, "<first>-<second>", text)
    return read_int(flag, first), read_int(flag, second)


PORT_RANGE = Form("<integer>-<integer>", _read_range)


def _read_listed(flag: str, text: str) -> tuple[str, ...]:
    found = tuple(text.split(","))
    if not all(found):
        raise _bad(flag, f"--{flag} option format is '<name>[,<name>]'. Got {text}")
    return found


LISTED = Form("<name>[,<name>]", _read_listed)


def some_of(allowed: tuple[str, ...]) -> Form:
    """Some of these words, with commas between; `none` alone for no word."""

    def read(flag: str, text: str) -> tuple[str, ...]:
        found = () if text == "none" else _read_listed(flag, text)
        for name in found:
            if name not in allowed:
                raise _bad(
                    flag,
                    f"invalid argument for --{flag}: '{name}' is none of {', '.join(allowed)}",
                )
        return found

    return Form("<name>[,<name>]", read)


# Values that add up ---------------------------------------------------------------


def _add_name(names: list[str], new: str) -> list[str]:
    return sorted({*names, new})


NAMES = Form("<string>", lambda flag, text: text, _add_name)
NUMBERS = Form("<integer>", read_int, lambda numbers, new: sorted({*numbers, new}))


def _nested(so_far: dict[str, Any], new: tuple[str, Any, Any]) -> dict[str, Any]:
    owner, key, value = new
    return {**so_far, owner: {**so_far.get(owner, {}), key: value}}


def settings(owner: str, *, owner_needed: bool = False) -> Form:
    """`<owner>,<setting>=<value>`: {owner: {setting: value}}; without an owner under ""."""

    def read(flag: str, text: str) -> tuple[str, str, str]:
        head, equals, value = text.partition("=")
        name, comma, key = head.rpartition(",")
        bare = "" if owner_needed else " or <setting>=<value>"
        if (comma and not name) or (owner_needed and not comma):
            raise _bad(
                flag,
                f"No {owner} specified. --{flag} option format is "
                f"<{owner} name>,<setting>=<value>{bare}. Got {text}",
            )
        if not equals or not key or not value:
            raise _bad(
                flag, f"--{flag} option format is '<{owner} name>,<setting>=<value>'. Got {text}"
            )
        return name, key, value

    return Form(f"<{owner}>,<setting>=<value>", read, _nested)


def _read_setting(flag: str, text: str) -> tuple[str, str]:
    key, equals, value = text.partition("=")
    if not key or not equals or not value:
        raise _bad(flag, f"--{flag} option format is <setting>=<value>. Got {text}")
    return key, value


def _add_entry(so_far: dict[Any, Any], new: tuple[Any, Any]) -> dict[Any, Any]:
    return {**so_far, new[0]: new[1]}


SETTING = Form("<setting>=<value>", _read_setting, _add_entry)

_TRACE_LEVELS = ("off", "false", "timestamps", "tensors", "min", "max", "true", "on")


def _read_trace(flag: str, text: str) -> tuple[str, tuple[str, str]]:
    head, equals, value = text.partition("=")
    mode, _, key = head.rpartition(",")
    if not equals or not key or not value:
        raise _bad(flag, f"--{flag} option format is '<trace mode>,<setting>=<value>'. Got {text}")
    if mode:
        return mode.lower(), (key, value)
    if key == "level" and value.lower() not in _TRACE_LEVELS:
        raise _bad(f"{flag} level", f"invalid value for trace level option: {value.lower()}")
    if key in ("rate", "count"):
        read_int(f"{flag} {key}", value)
    return "", (key, value.lower() if key == "mode" else value)


def _add_trace(so_far: dict[str, Any], new: tuple[str, tuple[str, str]]) -> dict[str, Any]:
    return {**so_far, new[0]: [*so_far.get(new[0], []), new[1]]}


TRACE = Form("<mode>,<setting>=<value>", _read_trace, _add_trace)


def _not_a_pair(flag: str, form: str, text: str) -> UsageError:
    return _bad(
        flag,
        "Cannot parse pair option due to incorrect number of inputs."
        f"--<pair option> argument requires format {form}. Found: {text}",
    )


def device_pair(metavar: str, read_value: Callable[[str, str], Any]) -> Form:
    """`<device>:<value>`: {device: value}; the last one of a device counts."""

    def read(flag: str, text: str) -> tuple[int, Any]:
        device, colon, value = text.partition(":")
        if not colon:
            raise _not_a_pair(flag, "<first>:<second>", text)
        return read_int(flag, device), read_value(flag, value)

    return Form(f"<integer>:{metavar}", read, _add_entry)


def _read_resource(flag: str, text: str) -> tuple[str, int, int]:
    name, *numbers = text.split(":")
    if len(numbers) not in (1, 2):
        raise _bad(
            flag,
            f"--{flag} option format is '<resource_name>:<count>:<device>' or "
            f"'<resource_name>:<count>'. Got {text}",
        )
    count = read_int(flag, numbers[0])
    device = read_int(flag, numbers[1]) if len(numbers) == 2 else -1
    return name.lower(), device, count


RESOURCES = Form("<name>:<count>[:<device>]", _read_resource, _nested)


def grouped(owners: tuple[str, ...]) -> Form:
    """`<owner>=<value>`: {owner: values}, for these owners."""

    def read(flag: str, text: str) -> tuple[str, str]:
        owner, equals, value = text.partition("=")
        if owner not in owners or not equals or not value:
            raise _bad(
                flag,
                f"--{flag} option format is <name>=<value>, the name one of {', '.join(owners)}. "
                f"Got {text}",
            )
        return owner, value

    def merge(so_far: dict[str, Any], new: tuple[str, str]) -> dict[str, Any]:
        owner, value = new
        return {**so_far, owner: (*so_far.get(owner, ()), value)}

    return Form("<name>=<value>", read, merge)


def restricted(what: str, *more: str) -> Form:
    """`<categories>:<header>=<value>`: {category: (header, value)}; each category once.

    more   categories beside those that all protocols have
    """
    categories = (*RESTRICTED_CATEGORIES, *more)

    def read(flag: str, text: str) -> dict[str, tuple[str, str]]:
        names, _, setting = text.partition(":")
        header, _, value = setting.partition("=")
        if not names or not header or not value:
            raise _bad(
                flag, f"--{flag} option format is '<config name>:<setting>=<value>'. Got {text}"
            )
        found: dict[str, tuple[str, str]] = {}
        for name in names.split(","):
            if name not in categories:
                raise _bad(
                    flag,
                    f"unknown restricted {what} '{name}'; it is none of {', '.join(categories)}",
                )
            found[name] = (header, value)
        return found

    def merge(so_far: dict[str, Any], new: dict[str, Any]) -> dict[str, Any]:
        for name in new:
            if name in so_far:
                raise UsageError(
                    f"restricted {what} '{name}' can not be specified in multiple config groups"
                )
        return {**so_far, **new}

    return Form(f"<{what}s>:<key>=<value>", read, merge)
