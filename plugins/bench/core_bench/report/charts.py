"""Charts as SVG text: lines over two axes, each linear or logarithmic."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from html import escape

_WIDTH, _HEIGHT = 560, 300
_LEFT, _RIGHT, _TOP, _BOTTOM = 70, 14, 14, 44
COLOURS = ("#3b5bdb", "#e8590c", "#2b8a3e", "#9c36b5", "#0b7285", "#c92a2a", "#5f3dc4", "#846358")

Point = tuple[float, float]


@dataclass(frozen=True)
class Line:
    """Points by ascending x, in any order if they are not joined.

    bounds   the lower and upper end of y at each point, or nothing
    dots     whether points are shown; joined: whether a line connects them
    """

    name: str
    points: Sequence[Point]
    bounds: Sequence[Point] = ()
    dots: bool = True
    joined: bool = True


@dataclass(frozen=True)
class Axis:
    """label: what it shows, with the unit. text: of a value of it."""

    label: str
    logarithmic: bool
    text: Callable[[float], str]


def chart(lines: Sequence[Line], across: Axis, up: Axis) -> str:
    """Return an <svg> element; "" if there is no point."""
    xs = [x for line in lines for x, _ in line.points]
    ys = [y for line in lines for _, y in line.points]
    ys += [y for line in lines for pair in line.bounds for y in pair]
    if not xs:
        return ""
    place_x = _scale(across, xs, _LEFT, _WIDTH - _RIGHT)
    place_y = _scale(up, ys, _HEIGHT - _BOTTOM, _TOP)
    parts = [f'<svg viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" aria-label="{escape(up.label)}">']
    parts += _grid(across, up, xs, ys, place_x, place_y)
    for number, line in enumerate(lines):
        parts += _drawn(line, COLOURS[number % len(COLOURS)], place_x, place_y)
    return "".join([*parts, "</svg>"])


def legend(lines: Sequence[Line]) -> str:
    """Return the names of lines in their colours; "" for a single line."""
    if len(lines) < 2:
        return ""
    items = "".join(
        f'<span><i style="background:{COLOURS[number % len(COLOURS)]}"></i>{escape(line.name)}</span>'
        for number, line in enumerate(lines)
    )
    return f'<p class="legend">{items}</p>'


def _drawn(line: Line, colour: str, place_x: _Place, place_y: _Place) -> list[str]:
    places = [(place_x(x), place_y(y)) for x, y in line.points]
    parts = []
    if line.joined:
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in places)
        parts.append(f'<polyline points="{path}" fill="none" stroke="{colour}" stroke-width="2"/>')
    for (x, _), (low, high) in zip(line.points, line.bounds, strict=False):
        at = f"{place_x(x):.1f}"
        parts.append(
            f'<line x1="{at}" x2="{at}" y1="{place_y(low):.1f}" y2="{place_y(high):.1f}" '
            f'stroke="{colour}" stroke-width="6" stroke-opacity="0.3"/>'
        )
    if line.dots:
        parts += [f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colour}"/>' for x, y in places]
    return parts


_Place = Callable[[float], float]


def _ends(axis: Axis, values: Sequence[float]) -> tuple[float, float]:
    low, high = min(values), max(values)
    if axis.logarithmic:
        low = max(low, high / 1e9, 1e-12)
        return low / 1.1, max(high, low) * 1.1
    return 0.0, high * 1.05 or 1.0


def _scale(axis: Axis, values: Sequence[float], begin: float, end: float) -> _Place:
    low, high = _ends(axis, values)
    if not axis.logarithmic:
        return lambda value: begin + (end - begin) * (value - low) / (high - low)
    span = math.log(high / low)
    return lambda value: begin + (end - begin) * math.log(max(value, low) / low) / span


def _ticks(axis: Axis, values: Sequence[float]) -> list[float]:
    low, high = _ends(axis, values)
    if axis.logarithmic:
        steps = (1, 2, 5) if high / low < 300 else (1,)
        first = math.floor(math.log10(low))
        last = math.ceil(math.log10(high))
        found = [m * 10.0**e for e in range(first, last + 1) for m in steps]
    else:
        step = 10.0 ** math.floor(math.log10(high / 4))
        step *= next(m for m in (1, 2, 5, 10) if high / (step * m) <= 6)
        found = [step * i for i in range(int(high / step) + 1)]
    return [each for each in found if low <= each <= high]


def _grid(
    across: Axis,
    up: Axis,
    xs: Sequence[float],
    ys: Sequence[float],
    place_x: _Place,
    place_y: _Place,
) -> list[str]:
    bottom = _HEIGHT - _BOTTOM
    parts = []
    for value in _ticks(across, xs):
        x = f"{place_x(value):.1f}"
        parts.append(f'<line class="grid" x1="{x}" x2="{x}" y1="{_TOP}" y2="{bottom}"/>')
        text = escape(across.text(value))
        parts.append(f'<text x="{x}" y="{bottom + 16}" text-anchor="middle">{text}</text>')
    for value in _ticks(up, ys):
        y = place_y(value)
        parts.append(
            f'<line class="grid" x1="{_LEFT}" x2="{_WIDTH - _RIGHT}" y1="{y:.1f}" y2="{y:.1f}"/>'
        )
        text = escape(up.text(value))
        parts.append(f'<text x="{_LEFT - 6}" y="{y + 4:.1f}" text-anchor="end">{text}</text>')
    middle = (_LEFT + _WIDTH - _RIGHT) / 2
    label = escape(across.label)
    parts.append(f'<text x="{middle}" y="{_HEIGHT - 6}" text-anchor="middle">{label}</text>')
    return parts
