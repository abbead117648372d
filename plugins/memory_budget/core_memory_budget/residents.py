"""Residents: the loaded models that a budget may unload.

Statistics of core say when a version was used last, so no request pays for it.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field

from core.governing import ModelVersion
from core_memory_budget.account import Entry
from core_memory_budget.policy import Candidate
from core_memory_budget.sizes import added


@dataclass
class Users:
    """The loaded ensembles by the models that they call, directly or not.

    busy     models that a running request of an ensemble may still call
    pinned   models that a pinned ensemble calls
    """

    busy: set[str] = field(default_factory=set)
    pinned: set[str] = field(default_factory=set)


def candidates(entries: Iterable[Entry], users: Users, now: float) -> list[Candidate]:
    """Return the models that may be unloaded now.

    users   what the ensembles of the server still need
    now     seconds since the epoch

    A model with sequences stays while a client may continue one: until it is idle for as long as the
    configuration allows.
    """
    by_key: dict[str, list[Entry]] = {}
    for entry in entries:
        by_key.setdefault(entry.key, []).append(entry)
    found = []
    for key, of_model in by_key.items():
        if key in users.pinned or not all(_may_go(each, now) for each in of_model):
            continue
        versions_of = [each.version for each in of_model if each.version is not None]
        busy = key in users.busy or any(each.in_flight for each in versions_of)
        found.append(
            Candidate(
                key,
                added(each.bytes for each in of_model),
                max(map(last_used, of_model)),
                sum(each.load_s for each in of_model),
                max(each.settings.priority for each in of_model),
                busy,
            )
        )
    return found


def users_of(versions: Iterable[ModelVersion], pinned: set[str]) -> Users:
    """Return which models running requests of ensembles, and pinned ensembles, still need."""
    # Of hundreds of versions, few are ensembles: their steps are made anew by each question for them.
    ensembles = [
        each
        for each in versions
        if each.state == "READY" and each.config.HasField("ensemble_scheduling")
    ]
    steps = {each.key: each.source.steps for each in ensembles}
    users = Users(pinned=set(pinned))
    for ensemble in ensembles:
        needed = all_steps(ensemble.key, steps)
        if ensemble.in_flight:
            users.busy |= needed
        if ensemble.key in pinned:
            users.pinned |= needed
    return users


def all_steps(key: str, steps: dict[str, tuple[str, ...]]) -> set[str]:
    """Return the models that an ensemble calls, directly or not."""
    found: set[str] = set()
    waiting = [key]
    while waiting:
        new = set(steps.get(waiting.pop(), ())) - found
        found |= new
        waiting += new
    return found


def last_used(entry: Entry) -> float:
    """Return when a loaded version was used last, else when it was loaded, in seconds since the epoch."""
    version = entry.version
    if version is None or version.state != "READY":
        return entry.loaded_at
    return max(entry.loaded_at, version.statistics.last_inference_ms / 1e3)


def _may_go(entry: Entry, now: float) -> bool:
    version = entry.version
    if version is None or version.state != "READY" or entry.state != "loaded":
        return False
    if entry.settings.pin or not entry.settings.on_request:
        return False
    if quiet_s := sequence_idle_s(version):
        return not version.in_flight and now - last_used(entry) > quiet_s
    return True


def sequence_idle_s(version: ModelVersion) -> float:
    """Return the seconds without a request that end a sequence; 0 for a model without sequences."""
    if not version.config.HasField("sequence_batching"):
        return 0.0
    return max(1.0, version.config.sequence_batching.max_sequence_idle_microseconds / 1e6)
