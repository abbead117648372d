"""Look: what is other in the repositories than what the models were loaded from, and whether it is at rest.

Polling sees folders while somebody copies into them. So it looks twice, and takes only what it has seen both
times: files that still grow, or that come one after the other, wait for a later look, and a folder that is
away for the moment of its replacement is not gone.
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
    """What one look has found.

    changed   name → what is there now and was not tried yet
    gone      wanted models that the repositories hold no more
    """

    changed: Survey
    gone: frozenset[str]

    def __bool__(self) -> bool:
        return bool(self.changed or self.gone)

    def at_rest(self, before: Changes) -> Changes:
        """Those that a look before has found as well."""
        same = {
            name: found
            for name, found in self.changed.items()
            if name in before.changed and not differs(before.changed[name], found)
        }
        return Changes(same, self.gone & before.gone)


def changes(found: Survey, there: Collection[str], models: Mapping[str, ManagedModel]) -> Changes:
    """What is to do after a look at everything.

    there   what the repositories hold; in `found` are the steps of ensembles too that they do not hold

    What failed is tried again when it has changed, and not before.
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
    """Whether two looks found something else."""
    if isinstance(last, ModelSource) and isinstance(found, ModelSource):
        return not policy.unchanged(last, found)
    if isinstance(last, CoreError) and isinstance(found, CoreError):
        return last.message != found.message
    return True
