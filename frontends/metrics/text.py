"""Metric families to Prometheus' text format.

prometheus_client's own writer is not used: it adds `_total` to the name of every counter, and the
names that dashboards know have none. The tests read what is written here with its parser.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from functools import lru_cache

from core.telemetry.families import Family

CONTENT_TYPE = "text/plain; charset=utf-8"

_APART = ("le", "quantile")  # tell samples of one metric apart: after all other labels


def render(families: Iterable[Family]) -> str:
    """The text of families; those without samples are left out. Ends with a newline."""
    families = list(families)  # which keeps their labels alive, and so apart by identity
    written: dict[int, str] = {}
    lines = []

    def labels_of(labels: Mapping[str, str]) -> str:
        """A model has the same in every family; with a thousand, writing them is what a scrape costs."""
        found = written.get(id(labels))
        if found is None:
            found = written[id(labels)] = _labels(labels)
        return found

    for family in families:
        if not family.samples:
            continue
        lines.append(f"# HELP {family.name} {_escaped(family.help)}")
        lines.append(f"# TYPE {family.name} {family.kind}")
        lines += [
            f"{family.name}{sample.suffix}{labels_of(sample.labels)} {_number(sample.value)}"
            for sample in family.samples
        ]
    return "".join(line + "\n" for line in lines)


def _labels(labels: Mapping[str, str]) -> str:
    if not labels:
        return ""
    return "{" + ",".join([_pair(name, labels[name]) for name in _order(tuple(labels))]) + "}"


@lru_cache(256)
def _order(names: tuple[str, ...]) -> tuple[str, ...]:
    """As names are written. There are few sets of them."""
    return (
        *sorted(name for name in names if name not in _APART),
        *(name for name in _APART if name in names),
    )


@lru_cache(8192)
def _pair(name: str, value: str) -> str:
    """One label. That of a model comes with each of its samples."""
    return f'{name}="{_escaped(value, quote=True)}"'


def _escaped(text: str, *, quote: bool = False) -> str:
    text = text.replace("\\", r"\\").replace("\n", r"\n")
    return text.replace('"', r"\"") if quote else text


def _number(value: float) -> str:
    """Integers without a point, as long as a float tells them apart."""
    if type(value) is int:
        return str(value)
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return str(int(value)) if value == int(value) and abs(value) < 2**53 else repr(value)
