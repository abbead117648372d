"""Metric families to Prometheus' text format.

prometheus_client's own writer is not used: it adds `_total` to the name of every counter, and the
names that dashboards know have none. The tests read what is written here with its parser.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from functools import lru_cache

from core.telemetry.families import Family
from core.telemetry.labels import Labels

CONTENT_TYPE = "text/plain; charset=utf-8"

_APART = ("le", "quantile")  # tell samples of one metric apart: after all other labels


def render(families: Iterable[Family]) -> str:
    """The text of families; those without samples are left out. Ends with a newline. Any thread.

    With a thousand models these lines are what a scrape costs: no call that is not needed, and labels that
    come again in each family and scrape keep their text.
    """
    lines = []
    for family in families:
        if not family.samples:
            continue
        name = family.name
        lines.append(f"# HELP {name} {_escaped(family.help)}")
        lines.append(f"# TYPE {name} {family.kind}")
        for labels, value, suffix in family.samples:
            text = _labels(labels) if type(labels) is not Labels else labels.text or _kept(labels)
            number = value if type(value) is int else _number(value)
            lines.append(f"{name}{suffix}{text} {number}")
    lines.append("")
    return "\n".join(lines)


def _kept(labels: Labels) -> str:
    labels.text = _labels(labels)
    return labels.text


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
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return str(int(value)) if value == int(value) and abs(value) < 2**53 else repr(value)
