"""The numbers, their bounds, and what lies behind each of them."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tests.shape.imports import components, graph
from tests.shape.sources import (
    FOLDERS,
    ROOT,
    classes,
    files,
    functions,
    lines,
    text,
)

AUTHOR = ("core/backend.py", "core/batch.py", "core/request.py")
"""What a backend author has to know."""

SIBLINGS = (
    "onnxruntime",
    "openvino",
    "pytorch",
    "tensorrt",
    "xgboost",
    "lightgbm",
    "fil",
    "python",
)
"""Backends of this project, by the names that configurations give them."""

PACKAGES = "|".join(
    (
        r"\b(?:backend|core)_(?:onnx|openvino|pytorch|tensorrt|fil|python|testing|client)\b",
        r"\bfrontends[.:](?!values)\w",
    )
)

TYPE_CHECKED = ("core/__init__.py", "from frontends.in_process import Server")
"""The import below TYPE_CHECKING of the only name of core that an entry point provides."""

TRITON_SIGNATURE = "backends/python/backend_python/api/request.py __init__"
"""Triton's pb_utils.InferenceRequest takes its 11 parameters by position too, and models may call it so."""

_PATH = re.compile(
    r"`((?:core|frontends|backends|plugins|clients|tests|docs|examples|deploy|benchmarks)/[\w./-]+)`"
)
_MOST_SHOWN = 30


@dataclass(frozen=True)
class Measure:
    """One number.

    what        its meaning
    value       current value
    bound       maximum value; None for a number that is only shown
    offenders   the items to change, the worst first
    """

    what: str
    value: int
    bound: int | None
    offenders: Sequence[str] = ()

    @property
    def holds(self) -> bool:
        return self.bound is None or self.value <= self.bound


def measures() -> list[Measure]:
    return [make() for make in _ALL]


def page(found: Sequence[Measure], *, all_offenders: bool = False) -> str:
    """Return a line for each number, and below it the items that exceed its limit.

    A number without a limit shows all its items.
    """
    shown = []
    for each in found:
        mark = "ok " if each.holds else "BAD"
        limit = "" if each.bound is None else f"of at most {each.bound:>7,}"
        shown.append(f"{mark} {each.value:>7,}  {limit:18}  {each.what}")
        if not each.holds or each.bound is None:
            most = None if all_offenders else _MOST_SHOWN
            shown += [f"            {line}" for line in each.offenders[:most]]
    return "\n".join(shown)


def _core() -> Measure:
    sizes = Counter[str]()
    for path in files("core"):
        sizes["/".join(path.parts[:2])] += lines(path)
    rows = [f"{size:>6} {place}" for place, size in sizes.most_common()]
    return Measure("lines of core", sum(sizes.values()), 29_000, rows)


def _author() -> Measure:
    found = [path for path in files("core") if str(path) in AUTHOR]
    rows = [f"{lines(path):>6} {path}" for path in found]
    return Measure("lines that a backend author reads", sum(map(lines, found)), 800, rows)


def _product() -> Measure:
    sizes = Counter[str]()
    for path in files(*FOLDERS):
        sizes[path.parts[0]] += lines(path)
    rows = [f"{size:>6} {place}" for place, size in sizes.most_common()]
    # Capabilities add lines, so there is no limit: core and each file have theirs.
    return Measure("lines of the product", sum(sizes.values()), None, rows)


def _same_names() -> Measure:
    places: dict[str, list[str]] = {}
    for each in classes("core", "frontends"):
        places.setdefault(each.name, []).append(each.place.partition(" ")[0])
    twice = {name: found for name, found in places.items() if len(found) > 1}
    rows = [f"{name}: {', '.join(found)}" for name, found in sorted(twice.items())]
    return Measure("class names used twice within core and frontends", len(twice), 0, rows)


def _largest_class() -> Measure:
    found = sorted(classes(*FOLDERS), key=lambda each: -each.size)
    rows = [f"{each.size:>6} {each.place}" for each in found if each.size > 20]
    return Measure("methods of the largest class", found[0].size, 20, rows)


def _parameters() -> Measure:
    ours = (each for each in functions(*FOLDERS) if each.place != TRITON_SIGNATURE)
    found = sorted(ours, key=lambda each: -each.size)
    rows = [f"{each.size:>6} {each.place}" for each in found if each.size > 8]
    return Measure("positional parameters of one function", found[0].size, 8, rows)


def _component() -> Measure:
    found = components(graph("core"))
    size = len(found[0]) if found else 0
    rows = [f"{len(each)}: {', '.join(each)}" for each in found if len(each) > 6]
    return Measure("modules of core in one circle of imports", size, 6, rows)


def _longest_file() -> Measure:
    found = sorted(files(*FOLDERS), key=lambda path: -lines(path))
    rows = [f"{lines(path):>6} {path}" for path in found if lines(path) > 350]
    return Measure("lines of the longest file", lines(found[0]), 350, rows)


def _siblings() -> Measure:
    literal = re.compile(rf"""["'](?:{"|".join(SIBLINGS)})["']|{PACKAGES}""")
    rows = [
        f"{path}:{number} {line.strip()}"
        for path in files("core")
        for number, line in enumerate(text(path).splitlines(), 1)
        if literal.search(line) and (str(path), line.strip()) != TYPE_CHECKED
    ]
    return Measure("mentions of a sibling within core", len(rows), 0, rows)


def _map() -> Measure:
    found = set(_PATH.findall((ROOT / "ARCHITECTURE.md").read_text()))
    rows = sorted(each for each in found if not (ROOT / each).exists())
    return Measure("paths in ARCHITECTURE.md that do not exist", len(rows), 0, rows)


_ALL: tuple[Callable[[], Measure], ...] = (
    _core,
    _author,
    _product,
    _same_names,
    _largest_class,
    _parameters,
    _component,
    _longest_file,
    _siblings,
    _map,
)
