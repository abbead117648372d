"""Suggest the name that is most similar to a misspelled one."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice

_LONGEST = 100  # characters of a name that is compared: clients choose it
_MOST = 200  # names that it is compared with


def nearest(found: str, known: Iterable[str], cutoff: float = 0.6) -> str:
    """Return the known name that is most similar to `found`, ignoring case; "" if none is."""
    import difflib  # slow to import, and only errors need it

    if len(found) > _LONGEST:
        return ""
    by_folded = {name.lower(): name for name in islice(known, _MOST)}
    close = difflib.get_close_matches(found.lower(), by_folded, 1, cutoff)
    return by_folded[close[0]] if close else ""


def did_you_mean(found: str, known: Iterable[str]) -> str:
    """Return the end of an error text that names the nearest known name; "" without one."""
    name = nearest(found, known)
    return f"; did you mean '{name}'?" if name else ""
