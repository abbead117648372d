"""Look: finds differences between the repositories and the loaded models, and whether they are stable.

Polling sees folders while files are copied into them. So it looks twice, and takes only changes that it saw
both times. Files that still grow or still arrive wait for a later look. A folder that is absent only while
it is replaced does not count as gone.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass

from core.errors import CoreError
from core.lifecycle import policy
from core.lifecycle.managed import ManagedModel
from core.repository import ModelSource
from core.repository.catalog import Survey

REST_S = 2.0
"""Between the two looks; never longer than between two polls."""


@dataclass(frozen=True)
class Changes:
    """The changes that one look has found.

    changed   name → current source that was not tried yet
    gone      wanted models that the repositories no longer hold
    """

    changed: Survey
    gone: frozenset[str]

    def __bool__(self) -> bool:
        return bool(self.changed or self.gone)

    def at_rest(self, before: Changes) -> Changes:
        """Return the changes that an earlier look found as well."""
        same = {
            name: found
            for name, found in self.changed.items()
            if name in before.changed and not differs(before.changed[name], found)
        }
        return Changes(same, self.gone & before.gone)


def changes(found: Survey, there: Collection[str], models: Mapping[str, ManagedModel]) -> Changes:
    """Return the changes after a look at all repositories.

    there   models that the repositories hold; `found` also has steps of ensembles that they do not hold

    A failed model is tried again only after it has changed.
    """
    changed = {
        name: each
        for name, each in found.items()
        if differs(models[name].attempt if name in models else None, each)
    }
    gone = {
        name
        for name, model in models.items()
        if model.wanted and name not in there and (name not in found or model.alive())
    }
    return Changes(changed, frozenset(gone))


def differs(last: ModelSource | CoreError | None, found: ModelSource | CoreError) -> bool:
    """Return whether two looks found different things."""
    if isinstance(last, ModelSource) and isinstance(found, ModelSource):
        return not policy.unchanged(last, found)
    if isinstance(last, CoreError) and isinstance(found, CoreError):
        return last.message != found.message
    return True
