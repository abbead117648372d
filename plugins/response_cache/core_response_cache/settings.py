"""The settings of --cache-config=local,<setting>=<value>."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass

from core.errors import CoreError, invalid
from core.similar import did_you_mean

_EXAMPLES = {
    "size": "a number of bytes, such as 104857600",
    "ttl": "a number of seconds, such as 60; 0 keeps entries until there is no room",
    "largest": "a number of bytes, such as 1048576",
    "share": "a number above 0 up to 1, such as 0.25",
    "header": "the name of a header",
    "coalesce": "true or false",
}


@dataclass(frozen=True)
class LocalSettings:
    """The settings of a local cache.

    size      bytes of all entries
    ttl_s     seconds that an entry is used; 0 for no limit
    largest   bytes of the tensors of a response; larger ones are not stored
    share     part of `size` that a caller keeps whatever others store; 1 for no shares
    header    of requests, which names a caller without a token; "" for none
    """

    size: int
    ttl_s: float = 0.0
    largest: int = 1 << 62
    share: float = 1.0
    header: str = ""

    @property
    def shares(self) -> bool:
        """Whether callers have shares."""
        return self.share < 1

    @classmethod
    def of(cls, settings: Mapping[str, str]) -> LocalSettings:
        """Return the parsed settings. Raises CoreError(INVALID) for an unknown one and for a wrong value."""
        if unknown := sorted(set(settings) - set(_EXAMPLES)):
            hint = did_you_mean(unknown[0], _EXAMPLES)
            raise _wrong(
                "local", f"no setting '{unknown[0]}'; there are {', '.join(_EXAMPLES)}{hint}"
            )
        if "size" not in settings:
            raise _wrong("local", "no size; try --cache-config=local,size=N")
        if "header" in settings and "share" not in settings:
            raise _wrong("local", "header names callers, which only share counts")
        return cls(
            size=_bytes(settings, "size", 0),
            ttl_s=_number(settings, "ttl", 0, math.inf),
            largest=_bytes(settings, "largest", cls.largest),
            share=_number(settings, "share", 1, 1, above=0),
            header=settings.get("header", ""),
        )


def coalesces(name: str, settings: Mapping[str, str]) -> bool:
    """Return whether equal requests run once. Raises CoreError(INVALID) for a wrong value."""
    text = settings.get("coalesce", "false").lower()
    if text not in ("true", "false"):
        raise _unexpected(name, "coalesce", text)
    return text == "true"


def _bytes(settings: Mapping[str, str], name: str, default: int) -> int:
    text = settings.get(name, str(default))
    if not (text.isascii() and text.isdigit()) or len(text) > 19:
        raise _unexpected("local", name, text)
    return int(text)


def _number(
    settings: Mapping[str, str], name: str, default: float, most: float, above: float = -1
) -> float:
    text = settings.get(name, str(default))
    try:
        found = float(text)
    except ValueError:
        found = math.nan
    if not above < found <= most or found < 0 or math.isinf(found):
        raise _unexpected("local", name, text)
    return found


def _unexpected(cache: str, name: str, text: str) -> CoreError:
    return _wrong(cache, f"{name}={text}; expected {_EXAMPLES[name]}")


def _wrong(cache: str, what: str) -> CoreError:
    return invalid(f"--cache-config={cache}: {what}")
