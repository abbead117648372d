"""Render metric families in Prometheus' text format.

The writer of prometheus_client adds `_total` to the name of every counter; the names that dashboards use
have no such suffix. The tests parse this module's text with prometheus_client.
"""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping
from functools import lru_cache

from core.telemetry.families import Family
from core.telemetry.labels import Labels

CONTENT_TYPE = "text/plain; charset=utf-8"

_APART = ("le", "quantile")  # distinguish samples of one metric: written after all other labels


def render(families: Iterable[Family]) -> str:
    """Return the text of all families that have samples. Any thread may call it.

    The text ends with a newline; it is empty if no family has samples. This loop dominates the cost of a
    scrape with a thousand models. So it makes few calls, and each Labels object keeps its own text for other
    families and later scrapes.
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
    """Return label names sorted, with those in _APART last. The cache is small: few sets of names exist."""
    return (
        *sorted(name for name in names if name not in _APART),
        *(name for name in _APART if name in names),
    )


@lru_cache(8192)
def _pair(name: str, value: str) -> str:
    """Return name="value". The text is cached, since each sample of a model repeats the model's labels."""
    return f'{name}="{_escaped(value, quote=True)}"'


def _escaped(text: str, *, quote: bool = False) -> str:
    text = text.replace("\\", r"\\").replace("\n", r"\n")
    return text.replace('"', r"\"") if quote else text


def _number(value: float) -> str:
    """Return a number in Prometheus' form; a whole number below 2**53 has no decimal point."""
    if math.isnan(value):
        return "NaN"
    if math.isinf(value):
        return "+Inf" if value > 0 else "-Inf"
    return str(int(value)) if value == int(value) and abs(value) < 2**53 else repr(value)
