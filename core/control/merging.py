"""Merge the answers of several workers into one: statistics, metrics and the repository index.

Pure functions. The first answer is that of the worker that received the request.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain
from typing import Any

from core.telemetry.families import Family, Sample, Summary, Together

_WORST_FIRST = ("UNAVAILABLE", "UNLOADING", "LOADING", "READY")

Entry = dict[str, Any]
_Model = tuple[str, str]


# statistics --------------------------------------------------------------------


def statistics(answers: Iterable[Sequence[Mapping[str, Any]]]) -> list[Entry]:
    """Return one entry of `model_stats` for each version: the sums of all workers, and the latest time."""
    found: dict[tuple[_Model, str], Entry] = {}
    for answer in answers:
        for entry in answer:
            key = (_model(entry), entry["version"])
            found[key] = _together(found[key], entry) if key in found else dict(entry)
    return [found[key] for key in sorted(found, key=lambda key: (key[0], int(key[1])))]


def _model(entry: Mapping[str, Any]) -> _Model:
    """Return namespace and name, which identify a model. The namespace is "" without --model-namespacing."""
    return entry.get("namespace", ""), entry["name"]


def _together(one: Mapping[str, Any], other: Mapping[str, Any]) -> Entry:
    return {
        **one,
        "last_inference": max(one["last_inference"], other["last_inference"]),
        "inference_count": one["inference_count"] + other["inference_count"],
        "execution_count": one["execution_count"] + other["execution_count"],
        "inference_stats": _sums(one["inference_stats"], other["inference_stats"]),
        "response_stats": _sums(one["response_stats"], other["response_stats"]),
        "batch_stats": _rows(one["batch_stats"], other["batch_stats"], ("batch_size",)),
        "memory_usage": _rows(one["memory_usage"], other["memory_usage"], ("type", "id")),
    }


def _sums(one: Mapping[str, Any], other: Mapping[str, Any]) -> Entry:
    """Return the sums of numbers with the same name, at any depth; a name of one side keeps its number."""
    found = dict(one)
    for name, value in other.items():
        if name not in found:
            found[name] = value
        elif isinstance(value, Mapping):
            found[name] = _sums(found[name], value)
        else:
            found[name] = found[name] + value
    return found


def _rows(
    one: Sequence[Mapping[str, Any]], other: Sequence[Mapping[str, Any]], names: Sequence[str]
) -> list[Entry]:
    """Add up the rows that have the same values of `names`; return them in the order of these values."""
    found: dict[tuple[Any, ...], Entry] = {}
    for row in (*one, *other):
        key = tuple(row[name] for name in names)
        labels = {name: row[name] for name in names}
        numbers = {name: value for name, value in row.items() if name not in names}
        before = {name: value for name, value in found.get(key, {}).items() if name not in names}
        found[key] = {**labels, **_sums(before, numbers)}
    return [found[key] for key in sorted(found)]


# metrics -------------------------------------------------------------------------


def families_as_values(families: Iterable[Family]) -> list[Any]:
    """Return families as lists, dicts, text and numbers, which other processes can receive."""
    return [
        [
            each.name,
            each.kind,
            each.help,
            []
            if each.summaries
            else [[dict(sample.labels), *sample[1:]] for sample in each.samples],
            each.together,
            [
                [
                    dict(one.labels),
                    list(one.quantiles),
                    one.count,
                    one.total_us,
                    one.lowest,
                    one.highest,
                    [[cell, count] for cell, count in one.cells.items()],
                ]
                for one in each.summaries
            ],
            each.changed,
        ]
        for each in families
    ]


def families_of_values(values: Iterable[Any]) -> list[Family]:
    """Return the families that families_as_values has turned into `values`."""
    found = []
    for name, kind, text, samples, together, summaries, changed in values:
        all_samples = [Sample(*sample) for sample in samples]
        kept = [
            Summary(labels, tuple(quantiles), count, total_us, lowest, highest, dict(cells))
            for labels, quantiles, count, total_us, lowest, highest, cells in summaries
        ]
        all_samples += [sample for each in kept for sample in each.samples()]
        found.append(Family(name, kind, text, all_samples, together, kept, changed))
    return found


def families(answers: Iterable[Iterable[Family]]) -> list[Family]:
    """Return every family once, with one sample for each suffix and set of labels.

    `together` of a family says how. Summaries are added up; quantiles are of the recent durations of all.
    """
    found: dict[str, Family] = {}
    samples: dict[tuple[Any, ...], Sample] = {}  # by name of the family, suffix and labels
    times: dict[tuple[Any, ...], int] = {}  # of their last change
    summaries: dict[tuple[Any, ...], Summary] = {}  # by name of the family and labels
    for family in chain.from_iterable(answers):
        name = family.name
        found.setdefault(name, Family(name, family.kind, family.help, together=family.together))
        for summary in family.summaries:
            key: tuple[Any, ...] = (name, *sorted(summary.labels.items()))
            summaries[key] = summaries[key].plus(summary) if key in summaries else summary
        if family.summaries:
            continue  # its samples are those of the summaries
        times_ns = family.changed or [0] * len(family.samples)
        for sample, time in zip(family.samples, times_ns, strict=True):
            key = (name, sample.suffix, *sorted(sample.labels.items()))
            if key in samples:
                sample, time = _merged(family.together, samples[key], times[key], sample, time)
            samples[key], times[key] = sample, time
    for (name, *_), sample in samples.items():
        found[name].samples.append(sample)
    for (name, *_), summary in summaries.items():
        found[name].summaries.append(summary)
        found[name].samples += summary.samples()
    return list(found.values())


def _merged(
    together: Together, one: Sample, one_ns: int, other: Sample, other_ns: int
) -> tuple[Sample, int]:
    """Combine two samples by the rule `together` of their family (see Family).

    Return the sample, and the time of its last change if the rule takes the latest sample, else 0.
    """
    if together == "latest" or (together == "latest or sum" and (one_ns or other_ns)):
        return (other, other_ns) if other_ns > one_ns else (one, one_ns)
    if together == "first":
        return one, 0
    if together == "largest":
        return (one if one.value >= other.value else other), 0
    if together == "smallest":
        return (one if one.value <= other.value else other), 0
    return Sample(one.labels, one.value + other.value, one.suffix), 0


# index -----------------------------------------------------------------------------


def index(answers: Mapping[int, Sequence[Mapping[str, Any]]], ready_only: bool) -> list[Entry]:
    """Return an entry for each version and each model without any, in its worst state; or only READY ones.

    answers   worker → all entries that it has
    A version that one worker does not have is UNAVAILABLE, because a client may reach that worker.
    """
    models = sorted({_model(entry) for entries in answers.values() for entry in entries})
    by_model: dict[_Model, dict[str, dict[int, Mapping[str, Any]]]] = {
        model: {} for model in models
    }
    for worker, entries in answers.items():
        for entry in entries:
            by_model[_model(entry)].setdefault(entry.get("version", ""), {})[worker] = entry
    found = []
    for versions in by_model.values():
        for version in sorted(filter(None, versions), key=int) or [""]:
            found.append(_worst(version, versions[version], answers))
    return [entry for entry in found if not ready_only or entry.get("state") == "READY"]


def _worst(
    version: str, by_worker: Mapping[int, Mapping[str, Any]], workers: Iterable[int]
) -> Entry:
    entries: list[Mapping[str, Any]] = list(by_worker.values())
    named = {key: entries[0][key] for key in ("name", "namespace") if key in entries[0]}
    if version:
        entries += [
            {
                **named,
                "version": version,
                "state": "UNAVAILABLE",
                "reason": f"worker {worker} does not have it",
            }
            for worker in workers
            if worker not in by_worker
        ]
    worst: Mapping[str, Any] = min(entries, key=_badness)
    return dict(worst)


def _badness(entry: Mapping[str, Any]) -> int:
    """Return a small number for a bad state; the largest without a state (nobody asked for that model)."""
    state = entry.get("state")
    return _WORST_FIRST.index(state) if state in _WORST_FIRST else len(_WORST_FIRST)
