"""Step: one step of an ensemble's configuration."""

from __future__ import annotations

from collections.abc import Iterable

from core.config import ModelConfig
from core.config.conditions import conditions_of
from core.request import RequestedOutput


class Step:
    """One step of an ensemble: a model, with a map from its tensors to those of the ensemble.

    inputs, outputs   the model's tensor name → the ensemble's
    needs             the ensemble's tensors that must be known before the step starts
    wanted            the outputs that a request to the model asks for
    condition         the BOOL tensor of the ensemble that decides whether the step runs; or None
    runs_if           value of the condition with which the step runs
    optional          names of the model's optional inputs
    ranks             input of the model → the rank it must have, if its producer has a batch dimension and
                      the model has none, or the reverse; None if there is no such input
    takes_device      whether the model accepts arrays in the memory of a device
    label             for error texts
    The code that opens the ensemble sets `optional`, `ranks` and `takes_device`.
    """

    def __init__(
        self,
        index: int,
        model: str,
        version: int,
        inputs: dict[str, str],
        outputs: dict[str, str],
        condition: str | None = None,
        runs_if: bool = True,
    ):
        self.index = index
        self.model = model
        self.version = version
        self.inputs = inputs
        self.outputs = outputs
        self.condition = condition
        self.runs_if = runs_if
        self.needs = set(inputs.values())
        if condition is not None:
            self.needs.add(condition)
        self.optional: frozenset[str] = frozenset()
        self.ranks: dict[str, int] | None = None
        self.takes_device = False
        self.wanted = tuple(RequestedOutput(name) for name in outputs)
        self.label = f"step {index} (model '{model}')"

    def __str__(self) -> str:
        return self.label

    def __repr__(self) -> str:
        return f"Step({self})"


def steps_of(config: ModelConfig) -> list[Step]:
    """Return the steps in the order of the configuration. A version of 0 or less becomes -1, the newest.

    With namespaces, a step's model is `<namespace>::<name>`.
    Raise CoreError(INVALID) for an invalid condition.
    """
    conditions = conditions_of(config)
    return [
        Step(
            index,
            f"{step.model_namespace}::{step.model_name}"
            if step.model_namespace
            else step.model_name,
            step.model_version if step.model_version > 0 else -1,
            dict(step.input_map),
            dict(step.output_map),
            *conditions.get(index, ()),
        )
        for index, step in enumerate(config.ensemble_scheduling.step)
    ]


def needed_steps(steps: Iterable[Step], wanted: Iterable[str]) -> list[Step]:
    """Return, in order, all steps that make `wanted` tensors, or inputs and conditions of such steps."""
    steps = list(steps)
    missing = set(wanted)
    needed: set[int] = set()
    while missing:
        makers = {s.index for s in steps if missing & set(s.outputs.values())} - needed
        needed |= makers
        missing = {name for s in steps if s.index in makers for name in s.needs}
    return [step for step in steps if step.index in needed]
