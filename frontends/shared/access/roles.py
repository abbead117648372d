"""Roles, and the roles that each category of calls needs.

    infer    ask models, and read what that needs: metadata, configurations, shared memory
    read     see everything and change nothing: also statistics, metrics, the repository, settings
    manage   as `read`, and change things: load and unload models, settings of log and trace

`infer` does not include `read`: who watches a server need not be able to use it. `manage` includes `read`.
A caller may have several roles.
"""

from __future__ import annotations

from dataclasses import dataclass

INFER, READ, MANAGE = ROLES = ("infer", "read", "manage")

_ANY = frozenset(ROLES)
_INFER = frozenset({INFER})
_READ = frozenset({READ, MANAGE})
_MANAGE = frozenset({MANAGE})

# category → roles that may look, roles that may change
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
    """What a call needs of its caller.

    category   of the call; some may be open to every caller
    roles      any one is enough
    """

    category: str
    roles: frozenset[str]

    @property
    def text(self) -> str:
        """The roles, as an error names them."""
        return " or ".join(role for role in ROLES if role in self.roles)


_TABLE = {
    (category, changes): Requirement(category, roles[changes])
    for category, roles in _ROLES.items()
    for changes in (False, True)
}


def requirement(category: str, *, changes: bool) -> Requirement:
    """Return what a call of a category needs.

    changes   whether the call may change something
    Raises KeyError for an unknown category, so that no call is open by mistake.
    """
    return _TABLE[category, changes]
