"""Conditions of an ensemble's steps: `parameters { key: "step[1].if" … }` of its configuration.

Triton's configuration has no field for a condition in a step. Parameters of the ensemble keep the file valid
for Triton. Here a condition is the name of a BOOL tensor. A plugin reads expressions, fallbacks and loops.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from core.config.messages import ModelConfig
from core.errors import invalid

_KEY = re.compile(r"step\[(\d+)\]\.(if|unless)")
_TENSOR = re.compile(r"[\w.:]*")


class Condition(NamedTuple):
    """A step runs if the BOOL tensor `tensor` of the ensemble is `runs_if`."""

    tensor: str
    runs_if: bool


def needs_arranging(config: ModelConfig) -> bool:
    """Return whether a plugin must arrange the steps of an ensemble: core reads names of tensors only."""
    tensors = {io.name for io in config.input}
    for step in config.ensemble_scheduling.step:
        tensors.update(step.output_map.values())
    for key, value in ((key, each.string_value) for key, each in config.parameters.items()):
        expression = value not in tensors and _TENSOR.fullmatch(value) is None
        if key.startswith("loop[") or (key.startswith("step[") and (expression or ".else" in key)):
            return True
    return False


def conditions_of(config: ModelConfig) -> dict[int, Condition]:
    """Return index of a step → its condition, if it has one; {} if a plugin arranges the steps.

    Raises CoreError(INVALID) if a key begins with "step[" and is no condition, if the step does not exist,
    if a step has two conditions, or if a condition is empty.
    """
    found: dict[int, Condition] = {}
    count = len(config.ensemble_scheduling.step)
    if needs_arranging(config):
        return found
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
