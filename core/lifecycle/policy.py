"""Version policy: select the versions of a model and plan the changes. Pure functions."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from copy import deepcopy
from dataclasses import dataclass
from typing import Literal

from core.config import ModelConfig
from core.repository import ModelSource

_POLICY = "version_policy"
_NOT_OF_THE_MODEL = ("instance_group", _POLICY)

State = Literal["LOADING", "READY", "UNLOADING", "UNAVAILABLE"]


@dataclass(frozen=True)
class Plan:
    """The versions of one model to load and to unload. Versions in neither tuple continue unchanged."""

    load: tuple[int, ...]
    unload: tuple[int, ...]


def wanted_versions(config: ModelConfig, present: Iterable[int]) -> list[int]:
    """Return the versions that the version policy selects from those present, ascending.

    The default policy is the newest version. Versions that `specific` names and that are not present
    are left out.
    """
    versions = sorted(present)
    match config.version_policy.WhichOneof("policy_choice"):
        case "all":
            return versions
        case "specific":
            named = set(config.version_policy.specific.versions)
            return [version for version in versions if version in named]
        case _:
            # `latest { }` without a number means one.
            return versions[-max(1, config.version_policy.latest.num_versions) :]


def plan(states: Mapping[int, State], wanted: Collection[int], stale: Collection[int] = ()) -> Plan:
    """Plan to load the wanted versions that are stale or not READY, and to unload READY ones not wanted.

    stale   versions whose files or configuration have changed since their load
    """
    ready = {version for version, state in states.items() if state == "READY"}
    keep = ready & set(wanted) - set(stale)
    return Plan(load=tuple(sorted(set(wanted) - keep)), unload=tuple(sorted(ready - set(wanted))))


def stale_versions(old: ModelSource | None, new: ModelSource) -> list[int]:
    """Return the versions of `new` that differ from those of `old`; all of them if `old` is None.

    All differ if one source is an override, or the folder, steps, a shared file or the configuration differs,
    even if only the configuration's time stamp does. A change of the version policy alone does not count.
    """
    if old is None or _all_differ(old, new):
        return sorted(new.versions)
    return sorted(v for v, stamp in new.versions.items() if old.versions.get(v) != stamp)


def same_files(old: ModelSource | None, new: ModelSource) -> list[int]:
    """Return the versions of `new` whose own and shared files, in the same folder, equal those of `old`."""
    if old is None or old.directory.address != new.directory.address or old.shared != new.shared:
        return []
    return sorted(v for v, stamp in new.versions.items() if old.versions.get(v) == stamp)


def only_groups_differ(old: ModelConfig, new: ModelConfig) -> bool:
    """Return whether two completed configurations differ in their instance groups only.

    The version policy does not count: it does not affect how a version runs.
    """
    if list(old.instance_group) == list(new.instance_group):
        return False
    return without(old, *_NOT_OF_THE_MODEL) == without(new, *_NOT_OF_THE_MODEL)


def without(config: ModelConfig, *fields: str) -> ModelConfig:
    """Return a copy of a configuration without the given fields."""
    copy = deepcopy(config)
    for field in fields:
        copy.ClearField(field)
    return copy


def unchanged(old: ModelSource, new: ModelSource) -> bool:
    """Return whether two looks found the same of a model; False if one of them is an override."""
    same = old.config_stamp == new.config_stamp and old.versions == new.versions
    return same and not _all_differ(old, new)


def _all_differ(old: ModelSource, new: ModelSource) -> bool:
    if old.overridden or new.overridden or old.directory.address != new.directory.address:
        return True
    if old.shared != new.shared or old.steps != new.steps:  # steps: of another repository now
        return True
    if old.config_stamp == new.config_stamp:
        return False
    # A new time stamp on an unchanged configuration asks for a reload.
    return old.config == new.config or without(old.config, _POLICY) != without(new.config, _POLICY)
