"""Suggest the name that is most similar to a misspelled one."""

from __future__ import annotations

from collections.abc import Iterable
from itertools import islice


def nearest(found: str, known: Iterable[str]) -> str:
    """Return the known name that is most similar to `found`, ignoring case; "" if none is.

    A client may choose `found`: over 100 characters give "", and only 200 names are compared.
    """
    import difflib  # slow to import, and only errors need it

    by_folded = {name.lower(): name for name in islice(known, 200 if len(found) <= 100 else 0)}
    close = difflib.get_close_matches(found.lower(), by_folded, 1)
    return by_folded[close[0]] if close else ""


def did_you_mean(found: str, known: Iterable[str]) -> str:
    """Return the end of an error text that names the nearest known name; "" without one."""
    return f"; did you mean '{name}'?" if (name := nearest(found, known)) else ""
