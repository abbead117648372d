"""Extras of core: what `pip install core[NAME]` brings. Core knows no other distribution by its name."""

from __future__ import annotations

from functools import cache
from importlib import metadata


@cache
def extras() -> frozenset[str]:
    """Return the names of the extras; none in a checkout that is not installed."""
    try:
        return frozenset(metadata.metadata("core").get_all("Provides-Extra") or ())
    except metadata.PackageNotFoundError:
        return frozenset()


def install_hint(name: str) -> str:
    """Return the end of an error text: how to install an extra of core; "" if there is none."""
    return f"; try: pip install core[{name}]" if name in extras() else ""
