"""Categories of requests that plugins add to those of the protocol (roles.py, forms.py).

core_add_options ─► [add_category] ─► --auth-open, --http-restricted-api, roles of callers
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from core.errors import internal

Roles = tuple[frozenset[str], frozenset[str]]

_added: dict[str, Roles] = {}


def add_category(name: str, *, reading: Iterable[str], changing: Iterable[str]) -> None:
    """Add a category for the routes of a plugin. Call it in the hook core_add_options.

    name       of the category, as flags take it
    reading, changing   roles of which a caller needs one: for GET, and for other methods
    A second call with equal roles does nothing. Raises CoreError(INTERNAL) for other roles.
    """
    roles = (frozenset(reading), frozenset(changing))
    if _added.setdefault(name, roles) != roles:
        raise internal(f"two plugins add the category '{name}', with different roles")


def added_categories() -> Mapping[str, Roles]:
    """Return name → (roles for reading, roles for changing) of the added categories."""
    return _added
