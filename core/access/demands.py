"""Which roles there are, and which of them each kind of call demands.

    infer    ask models, and what one has to know for that: metadata, configurations, shared memory
    read     see everything and change nothing: also statistics, metrics, the repository, settings
    manage   what `read` may, and change things: load and unload models, settings of log and trace

`infer` and `read` stand beside each other: who watches a server need not be able to use it. `manage` is
above `read`. A caller may have several.
"""

from __future__ import annotations

from dataclasses import dataclass

INFER, READ, MANAGE = ROLES = ("infer", "read", "manage")

_ANY = frozenset(ROLES)
_INFER = frozenset({INFER})
_READ = frozenset({READ, MANAGE})
_MANAGE = frozenset({MANAGE})

# category → who may look, who may change
_DEMANDS = {
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
CATEGORIES = tuple(_DEMANDS)


@dataclass(frozen=True)
class Demand:
    """What a call demands of its caller.

    category   of the call; some may be open to everybody
    roles      any of which is enough
    """

    category: str
    roles: frozenset[str]

    @property
    def text(self) -> str:
        """The roles, as an error names them."""
        return " or ".join(role for role in ROLES if role in self.roles)


_TABLE = {
    (category, changes): Demand(category, roles[changes])
    for category, roles in _DEMANDS.items()
    for changes in (False, True)
}


def demand(category: str, *, changes: bool) -> Demand:
    """Of a call of that category.

    changes   whether it may change something
    Raises KeyError for a category that is none: nothing is open because nobody thought of it.
    """
    return _TABLE[category, changes]
