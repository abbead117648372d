"""What each section should reach, and whether its rows do."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

Row = Mapping[str, Any]
MET, MISSED, UNKNOWN = "met", "missed", "not measured"


@dataclass(frozen=True)
class Goal:
    """A bound of one column.

    sections   names of the sections that it is for
    column     of the rows; rows without it are not judged
    text       the goal in words
    reached    value → whether it is reached
    where      row → whether the row is judged
    highest    whether the highest value is the worst one
    """

    sections: tuple[str, ...]
    column: str
    text: str
    reached: Callable[[Any], bool]
    where: Callable[[Row], bool] = lambda row: True
    highest: bool = True

    def judged(self, section: str, row: Row) -> bool:
        """Return whether this goal says something about a row."""
        return section in self.sections and self.column in row and self.where(row)


def at_least(least: float) -> dict[str, Any]:
    return {"reached": lambda value: value >= least, "highest": False}


def at_most(most: float) -> dict[str, Any]:
    return {"reached": lambda value: value <= most}


def stays(row: Row) -> bool:
    return row.get("ends") == "GPU"


LOOPS = ("models", "instances", "aotinductor", "onnx")
TRUE: dict[str, Any] = {"reached": bool, "highest": False}
GOALS = (
    Goal(LOOPS, "ratio", "rate at least 0.95 of a bare loop", **at_least(0.95)),
    Goal(LOOPS, "added_p50_ms", "at most 0.2 ms more than a bare loop", **at_most(0.2)),
    Goal(("generation",), "ratio", "tokens at least 0.95 of transformers alone", **at_least(0.95)),
    Goal(("chains",), "DtoH", "no copy to the host between steps", where=stays, **at_most(0)),
    Goal(("chains",), "HtoD", "no copy to the GPU between steps", where=stays, **at_most(0)),
    Goal(("chains",), "right", "answers of chains are right", **TRUE),
    Goal(("shared",), "added_ms", "16 MB at most 0.2 ms more than 4 kB", **at_most(0.2)),
    Goal(("reloads",), "gpu_growth_mib", "memory of the GPU grows by 1 MiB at most", **at_most(1)),
    Goal(("reloads",), "resident_growth_mib", "memory of the host by 8 MiB at most", **at_most(8)),
    Goal(("metrics",), "difference", "metrics within 2 % of nvidia-smi", **at_most(0.02)),
    Goal(("memory",), "others_answer", "other models answer after out of memory", **TRUE),
    Goal(("memory",), "next_loads", "the next model loads after it", **TRUE),
)


def missed(section: str, row: Row) -> dict[str, bool]:
    """Return column → whether its goal is missed, for the columns of a row that have a goal."""
    found = [each for each in GOALS if each.judged(section, row)]
    return {each.column: not each.reached(row[each.column]) for each in found}


def summary(sections: Mapping[str, Mapping[str, Any]]) -> list[dict[str, Any]]:
    """Return a row for each goal: the section, the goal, the worst figure, how many rows reach it."""
    found = []
    for goal in GOALS:
        for section in goal.sections:
            rows = sections.get(section, {}).get("rows", [])
            values = [row[goal.column] for row in rows if goal.judged(section, row)]
            found.append({"section": section, "goal": goal.text, **_counted(goal, values)})
    return found


def _counted(goal: Goal, values: Sequence[Any]) -> dict[str, Any]:
    if not values:
        return {"worst": "", "rows": "0 of 0", "result": UNKNOWN}
    reached = sum(map(goal.reached, values))
    return {
        "worst": max(values) if goal.highest else min(values),
        "rows": f"{reached} of {len(values)}",
        "result": MET if reached == len(values) else MISSED,
    }
