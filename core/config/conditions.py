"""Conditions of an ensemble's steps: `parameters { key: "step[1].if" … }` of its configuration.

Triton's configuration has no field for a condition in a step. Parameters of the ensemble keep the file valid
for Triton.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from core.config.messages import ModelConfig
from core.errors import invalid

_KEY = re.compile(r"step\[(\d+)\]\.(if|unless)")


class Condition(NamedTuple):
    """A step runs if the BOOL tensor `tensor` of the ensemble is `runs_if`."""

    tensor: str
    runs_if: bool


def conditions_of(config: ModelConfig) -> dict[int, Condition]:
    """Return the conditions of an ensemble's steps, by index of the step.

    Raises CoreError(INVALID) if a key begins with "step[" and is no condition, if the step does not exist,
    if a step has two conditions, or if a condition names no tensor.
    """
    found: dict[int, Condition] = {}
    count = len(config.ensemble_scheduling.step)
    for key in sorted(config.parameters):
        if not key.startswith("step["):
            continue
        where = f"in ensemble '{config.name}', parameter '{key}'"
        if (match := _KEY.fullmatch(key)) is None:
            raise invalid(
                f"{where}: the conditions of steps are 'step[<index>].if' and 'step[<index>].unless'"
            )
        index = int(match[1])
        if index >= count:
            raise invalid(f"{where}: there are {count} steps, the first is step[0]")
        if index in found:
            raise invalid(f"{where}: step {index} has another condition already; it can have one")
        tensor = config.parameters[key].string_value
        if not tensor:
            raise invalid(
                f"{where}: string_value must be the name of a BOOL tensor of the ensemble"
            )
        found[index] = Condition(tensor, match[2] == "if")
    return found
