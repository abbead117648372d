"""Forms of flags of several frontends, in addition to core/options/values.py."""

from __future__ import annotations

import re
from typing import Any

from core.options.values import Form, UsageError, bad_value, read_float
from frontends.shared.added_categories import added_categories

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
"""Categories of requests in all protocols. Plugins may add others (added_categories.py)."""


def _read_pattern(flag: str, text: str) -> str:
    try:
        re.compile(text)
    except re.error as error:
        raise bad_value(flag, f"invalid regular expression '{text}': {error}") from None
    return text


PATTERN = Form("<string>", _read_pattern)


def _read_amount(flag: str, text: str) -> float:
    value = read_float(flag, text)
    if not 0.0 <= value < 1e9:
        raise bad_value(flag, f"Invalid option value. Got {text}, the value must be from 0 to 1e9")
    return value


AMOUNT = Form("<float>", _read_amount)


def _read_mode(flag: str, text: str) -> str:
    if re.fullmatch(r"0?[0-7]{3}", text) is None:
        raise bad_value(
            flag, f"Invalid option value. Got {text}; expected three octal digits: 0660"
        )
    return text


MODE = Form("<octal>", _read_mode)  # permissions of a file, as chmod takes them


def _read_listed(flag: str, text: str) -> tuple[str, ...]:
    found = tuple(text.split(","))
    if not all(found):
        raise bad_value(flag, f"--{flag} option format is '<name>[,<name>]'. Got {text}")
    return found


LISTED = Form("<name>[,<name>]", _read_listed)


_ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://[^\s/?#@*]+")
_DEFAULT_PORTS = {"http": ":80", "https": ":443"}


def _read_origins(flag: str, text: str) -> tuple[str, ...]:
    """Return the origins in a comma-separated list as browsers write them: lower case, no default port.

    "*" stays as it is. Raises the error for a wrong flag if another entry is no origin.
    """
    return tuple(each if each == "*" else _origin(flag, each) for each in _read_listed(flag, text))


def _origin(flag: str, text: str) -> str:
    found = text.strip().lower().removesuffix("/")
    if _ORIGIN.fullmatch(found) is None:
        raise bad_value(
            flag, f"'{text}' is no origin; expected <scheme>://<host>[:<port>] without a path, or *"
        )
    return found.removesuffix(_DEFAULT_PORTS.get(found.partition(":")[0], "/"))


ORIGINS = Form("<origin>[,<origin>]", _read_origins)


def some_of(allowed: tuple[str, ...]) -> Form:
    """Return the form of a flag with a comma-separated list of words; `none` stands for no word.

    allowed   the valid words, beside the categories that plugins have added
    """

    def read(flag: str, text: str) -> tuple[str, ...]:
        found = () if text == "none" else _read_listed(flag, text)
        known = (*allowed, *added_categories())
        for name in found:
            if name not in known:
                raise bad_value(
                    flag,
                    f"invalid argument for --{flag}: '{name}' is none of {', '.join(known)}",
                )
        return found

    return Form("<name>[,<name>]", read)


def grouped(owners: tuple[str, ...]) -> Form:
    """Return the form of a flag that is given as <owner>=<value>, any number of times.

    owners   the valid words before "="
    The flag's value is {owner: all values that were given for it}.
    """

    def read(flag: str, text: str) -> tuple[str, str]:
        owner, equals, value = text.partition("=")
        if owner not in owners or not equals or not value:
            raise bad_value(
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
    """Return the form of a flag <category>[,<category>]:<header>=<value>, which may be repeated.

    what   word for a category in help and errors, such as "api"
    more   categories that are valid in addition to RESTRICTED_CATEGORIES and those of plugins
    The flag's value is {category: (header, value)}. A category may not be in two of the flags.
    """

    def read(flag: str, text: str) -> dict[str, tuple[str, str]]:
        categories = (*RESTRICTED_CATEGORIES, *more, *added_categories())
        names, _, setting = text.partition(":")
        header, _, value = setting.partition("=")
        if not names or not header or not value:
            raise bad_value(
                flag, f"--{flag} option format is '<config name>:<setting>=<value>'. Got {text}"
            )
        found: dict[str, tuple[str, str]] = {}
        for name in names.split(","):
            if name not in categories:
                raise bad_value(
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
