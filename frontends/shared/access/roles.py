"""Roles, and the roles that each category of calls needs.

    infer    run inference; read metadata and configurations; register shared memory
    read     read all of the protocol, also statistics, metrics, the repository, settings; change nothing
    manage   read that too; load and unload models; change settings of log and trace

Plugins say which role each of their categories needs. `infer` does not include `read`, and `read` not
`infer`: a monitoring system needs no inference. A caller may have several roles.
"""

from __future__ import annotations

from dataclasses import dataclass

from frontends.shared.added_categories import added_categories

INFER, READ, MANAGE = ROLES = ("infer", "read", "manage")

_ANY = frozenset(ROLES)
_INFER = frozenset({INFER})
_READ = frozenset({READ, MANAGE})
_MANAGE = frozenset({MANAGE})

# Category → roles for reading, roles for changes.
_ROLES = {
    "health": (_ANY, _ANY),
    "metadata": (_ANY, _ANY),
    "inference": (_INFER, _INFER),
    "shared-memory": (_ANY, _INFER),
    "model-config": (_ANY, _ANY),
    "model-repository": (_READ, _MANAGE),
    "statistics": (_READ, _READ),
    "trace": (_READ, _MANAGE),
    "logging": (_READ, _MANAGE),
    "metrics": (_READ, _READ),
}
CATEGORIES = tuple(_ROLES)


@dataclass(frozen=True)
class Requirement:
    """The roles that a call requires.

    category   of the call; --auth-open names categories that every caller may call
    roles      a caller needs one of them
    """

    category: str
    roles: frozenset[str]

    @property
    def text(self) -> str:
        """The roles as words for an error text, such as "read or manage"."""
        return " or ".join(role for role in ROLES if role in self.roles)


_TABLE = {
    (category, changes): Requirement(category, roles[changes])
    for category, roles in _ROLES.items()
    for changes in (False, True)
}


def requirement(category: str, *, changes: bool) -> Requirement:
    """Return the requirement of a call of a category.

    changes   whether the call may change the server
    Raises KeyError for an unknown category, so that no call is open by mistake.
    """
    if (roles := added_categories().get(category)) is not None:
        return Requirement(category, roles[changes])
    return _TABLE[category, changes]


def known_categories() -> tuple[str, ...]:
    """Return CATEGORIES and those that plugins have added."""
    return (*CATEGORIES, *added_categories())
