"""Arranges the steps of an ensemble by its rules.

steps, Rules ─► [arranged] ─► Plan: the steps that core runs.  Three kinds of steps are added:

condition   makes a BOOL tensor, by which core decides whether a step runs
fallback    makes a tensor that another step may leave out
loop        stands for the steps of a loop, which run in turns

They are steps whose models only this plugin has. Hidden tensors connect them. The names of both begin with
NUL, so they are never those of a user.
"""

from __future__ import annotations

from collections.abc import Generator, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from core.config import Signature
from core.errors import invalid
from core.governing import Step
from core_ensembles.language import Expression
from core_ensembles.language.kinds import Form
from core_ensembles.parameters import Choice, Loop, Rules

VALUE = "value"
"""The output of a condition and of a fallback, and the input of a fallback that has precedence."""
OTHER = "other"
"""The input of a fallback that stands for the other one."""


@dataclass(frozen=True)
class Decision:
    """What the model of a condition does.

    key       of the step or loop: "step[1]"
    inverse   whether its tensor is true where the expression is false: core takes an absent tensor for false,
              and it is absent if the expression reads absent tensors only
    runs_if   value of the expression with which the step or loop runs; for another turn, True
    """

    key: str
    expression: Expression
    inverse: bool
    runs_if: bool


@dataclass(frozen=True)
class LoopSteps:
    """A loop and what one of its turns runs.

    steps     of a turn
    outside   tensors that a turn reads and does not make
    again     the hidden tensor that is true if another turn follows; None if the number of turns is fixed
    made      tensors of the last turn that others read
    unsure    those of them that a turn may not make, since it skips steps. For each, the answer of the loop
              has a BOOL tensor `presence(name)`, and any tensor in place of one that does not exist
    """

    loop: Loop
    steps: list[Step]
    outside: list[str]
    again: str | None
    made: list[str]
    unsure: frozenset[str]


@dataclass
class Plan:
    """The steps to run, and what the models of the added steps do, by name.

    passing   models that return their input VALUE, else their input OTHER
    """

    steps: list[Step] = field(default_factory=list)
    decisions: dict[str, Decision] = field(default_factory=dict)
    passing: set[str] = field(default_factory=set)
    loops: dict[str, LoopSteps] = field(default_factory=dict)


def arranged(
    rules: Rules,
    steps: Sequence[Step],
    models: Sequence[Signature | None],
    outputs: Iterable[str],
    forms: Mapping[str, Form | None],
    optional: frozenset[str] = frozenset(),
) -> Plan:
    """Return the plan of an ensemble whose tensors are checked.

    outputs   of the ensemble
    forms     of all tensors
    optional  inputs of the ensemble that a client may omit
    Raises CoreError(INVALID) for a loop that needs what comes after it, and for a decoupled model or one with
    sequences within a loop.
    """
    return _Arranging(rules, steps, models, forms, optional).plan(set(outputs))


class _Arranging:
    def __init__(
        self,
        rules: Rules,
        steps: Sequence[Step],
        models: Sequence[Signature | None],
        forms: Mapping[str, Form | None],
        optional: frozenset[str],
    ):
        self._rules = rules
        self._steps = steps
        self._models = models
        self._forms = forms
        self._optional = optional
        self._count = len(steps)
        self._plan = Plan()

    def plan(self, outputs: set[str]) -> Plan:
        """Replace each loop by one step, the inner loops first."""
        # Index of the step in the configuration to which each belongs; of a loop, of its first step.
        items = [(step.index, each) for step in self._steps for each in self._with_choice(step)]
        for loop in self._rules.loops:
            self._check_models(loop)
            inside = [step for index, step in items if loop.has(index)]
            items = [item for item in items if not loop.has(item[0])]
            outside = [step for _, step in items]
            wanted = outputs.union(self._read_around(loop), *(step.needs for step in outside))
            _check_order(self._rules.ensemble, loop, inside, outside)
            items += [(loop.first, step) for step in self._looped(loop, inside, wanted)]
        self._plan.steps = [step for _, step in items]
        self._check_origins()
        return self._plan

    def _check_origins(self) -> None:
        """Raise CoreError(INVALID) for a step that reads answers of two decoupled models: they never meet."""
        origins: dict[str, Step | None] = {}
        waiting = list(self._plan.steps)
        made = {name for step in waiting for name in step.outputs.values()}
        while ready := [each for each in waiting if origins.keys() >= each.needs & made]:
            for step in ready:
                waiting.remove(step)
                found = [origins.get(name) for name in sorted(step.needs)]
                met = list(dict.fromkeys(each for each in found if each is not None))
                if len(met) > 1:
                    raise invalid(
                        f"in ensemble '{self._rules.ensemble}', {step} reads answers of {met[0]} and of "
                        f"{met[1]}, which are decoupled: they may differ in number"
                    )
                model = self._models[step.index] if step.index < len(self._models) else None
                origin = step if model is not None and model.decoupled else None
                origins.update(
                    (name, origin or next(iter(met), None)) for name in step.outputs.values()
                )

    def _check_models(self, loop: Loop) -> None:
        for step in self._steps[loop.first : loop.last + 1]:
            model = self._models[step.index]
            where = f"in ensemble '{self._rules.ensemble}', {step} of {loop.key}"
            if model is not None and model.decoupled:
                raise invalid(
                    f"{where}: the model is decoupled, and a turn needs exactly one answer of each step; "
                    "take the step out of the loop"
                )
            if model is not None and model.sequence:
                raise invalid(
                    f"{where}: the model has sequence_batching, and each turn would be a request of the "
                    "client's sequence; take the step out of the loop"
                )

    def _read_around(self, loop: Loop) -> Iterator[str]:
        """Yield the tensors that loops around this one read beside their steps."""
        for other in self._rules.loops:
            if other is not loop and other.has(loop.first):
                yield from other.carry
                if other.again is not None:
                    yield from (name.name for name in other.again.names)

    def _with_choice(self, step: Step) -> Iterator[Step]:
        """Yield a step, and those that make its condition and its fallbacks."""
        choice = self._rules.choices.get(step.index)
        if choice is None:
            yield step
            return
        outputs = {
            theirs: _made(choice, ours) if ours in choice.fallbacks else ours
            for theirs, ours in step.outputs.items()
        }
        condition = yield from self._condition_of(choice)
        copy = Step(step.index, step.model, step.version, step.inputs, outputs, *condition)
        copy.optional, copy.ranks = step.optional, step.ranks
        copy.takes_device, copy.label = step.takes_device, step.label
        yield copy
        yield from self._fallbacks_of(choice)

    def _condition_of(self, choice: Choice) -> Generator[Step, None, tuple[str, bool] | tuple[()]]:
        """Yield the step that makes a condition; return its tensor and the value with which to run."""
        if choice.condition is None:
            return ()
        runs_if = choice.condition.runs_if
        step = self._condition(choice.key, "if", choice.condition.expression, runs_if)
        step.label = f"the condition of {choice.label}"
        yield step
        inverse = self._plan.decisions[step.model].inverse
        return (step.outputs[VALUE], runs_if is not inverse)

    def _condition(self, key: str, name: str, expression: Expression, runs_if: bool) -> Step:
        model = f"\0{key}.{name}"
        names = {each.name: each.name for each in expression.names}
        inverse = expression.holds({})
        self._plan.decisions[model] = Decision(key, expression, inverse, runs_if)
        return self._added(model, names, {VALUE: model})

    def _fallbacks_of(self, choice: Choice) -> Iterator[Step]:
        for output, fallback in choice.fallbacks.items():
            model = f"\0{choice.key}.else.{output}"
            inputs = {VALUE: _made(choice, output), OTHER: fallback}
            step = self._added(model, inputs, {VALUE: output})
            step.label = f"the fallback of '{output}'"
            ours, theirs = self._forms[output], self._forms[fallback]
            if ours is not None and theirs is not None and ours.batched is not theirs.batched:
                step.ranks = {OTHER: len(ours.shape)}
            self._plan.passing.add(model)
            yield step

    def _looped(self, loop: Loop, inside: list[Step], wanted: set[str]) -> Iterator[Step]:
        """Yield the step that stands for a loop, and those that make its condition and its fallbacks.

        wanted   the tensors that others read
        """
        again = None
        if loop.again is not None:
            step = self._condition(loop.key, "while", loop.again, True)
            step.label = f"the condition for another turn of {loop.key}"
            again = step.outputs[VALUE]
            inside = [*inside, step]
        made = [name for step in inside for name in step.outputs.values()]
        needs = dict.fromkeys(name for step in inside for name in sorted(step.needs))
        needs.update(dict.fromkeys(loop.carry.values()))
        outside = [name for name in needs if name not in made]
        given = [name for name in made if name in wanted]
        required = {name for step in inside for name in _required(step)}
        absent = {name for name in outside if name in self._optional or name not in required}
        unsure = _skippable(inside, absent).intersection(given)
        model = f"\0{loop.key}"
        self._plan.loops[model] = LoopSteps(loop, inside, outside, again, given, unsure)
        condition = yield from self._condition_of(loop.choice)
        outputs = {
            name: _made(loop.choice, name) if name in loop.choice.fallbacks else name
            for name in given
        }
        for name in sorted(unsure):
            yield self._gate(model, name, outputs[name])
            outputs[name] = f"{model}.given.{name}"
            outputs[presence(name)] = f"{model}.{presence(name)}"
        step = self._added(model, dict(zip(outside, outside, strict=True)), outputs, condition)
        step.label = loop.key
        step.optional -= required
        readers = [each for each in inside if not each.needs.isdisjoint(outside)]
        step.takes_device = all(each.takes_device for each in readers)
        yield step
        yield from self._fallbacks_of(loop.choice)

    def _gate(self, loop: str, name: str, output: str) -> Step:
        """Return the step that passes on a tensor of a loop if it exists; else core takes it for skipped."""
        model = f"{loop}.output.{name}"
        self._plan.passing.add(model)
        condition = (f"{loop}.{presence(name)}", True)
        step = self._added(model, {VALUE: f"{loop}.given.{name}"}, {VALUE: output}, condition)
        step.label = f"the output '{name}' of {loop[1:]}"
        return step

    def _added(
        self, model: str, inputs: dict[str, str], outputs: dict[str, str], condition: Any = ()
    ) -> Step:
        """Return a step of this plugin. It may lack any input."""
        step = Step(self._count, model, -1, inputs, outputs, *condition)
        step.optional = frozenset(inputs)
        self._count += 1
        return step


def _made(choice: Choice, output: str) -> str:
    """Return the hidden tensor that a step or loop makes in place of an output with a fallback."""
    return f"\0{choice.key}.{output}"


def presence(name: str) -> str:
    """Return the output of a loop that is true if its output `name` exists."""
    return f"\0{name}"


def _skippable(steps: Sequence[Step], absent: set[str]) -> frozenset[str]:
    """Return the tensors that some steps may not make, because one of them is skipped.

    absent   tensors from elsewhere that may not exist
    """
    found = set[str]()
    while new := {
        name
        for step in steps
        if step.condition is not None or _lacks(step, found | absent)
        for name in step.outputs.values()
        if name not in found
    }:
        found |= new
    return frozenset(found)


def _lacks(step: Step, absent: set[str]) -> bool:
    """Return whether a step is skipped if all these tensors do not exist."""
    return not absent.isdisjoint(_required(step)) or (
        bool(step.inputs) and absent.issuperset(step.needs)
    )


def _required(step: Step) -> set[str]:
    """Return the tensors without which a step is skipped."""
    return {ours for theirs, ours in step.inputs.items() if theirs not in step.optional}


def _check_order(
    ensemble: str, loop: Loop, inside: Sequence[Step], outside: Sequence[Step]
) -> None:
    """Raise CoreError(INVALID) if a loop reads what a step outside of it makes of the loop's own tensors."""
    own = {name for step in inside for name in step.outputs.values()}
    makers = {name: step for step in outside for name in step.outputs.values()}
    ways = [[name] for step in inside for name in sorted(step.needs - own)]
    seen = set[str]()
    for way in ways:  # grows
        name = way[-1]
        if name in own:
            raise invalid(
                f"in ensemble '{ensemble}', {loop.key} reads '{way[0]}', which {makers[way[0]]} makes from "
                f"'{name}' of the loop: let the loop contain this step, or run it before the loop"
            )
        if name in makers and name not in seen:
            seen.add(name)
            ways += [[*way, each] for each in sorted(makers[name].needs)]
