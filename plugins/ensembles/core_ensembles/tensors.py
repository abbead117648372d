"""Checks of the tensors that the parameters of an ensemble name."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from core.config import ModelConfig, Signature
from core.config.validation.ensemble import check_flow
from core.errors import CoreError, invalid
from core.governing import Step
from core.similar import did_you_mean
from core_ensembles.language import Expression
from core_ensembles.language.kinds import Form
from core_ensembles.parameters import Choice, Loop, Rules


def forms_of(
    signature: Signature, steps: Sequence[Step], models: Sequence[Signature | None]
) -> dict[str, Form | None]:
    """Return the form of each tensor of an ensemble, as it is made; None if only a load can tell."""
    batched = signature.max_batch_size > 0
    forms: dict[str, Form | None] = {
        name: Form(spec.dtype, spec.dims if spec.reshape is None else spec.reshape, batched)
        for name, spec in signature.inputs.items()
    }
    for step, model in zip(steps, models, strict=True):
        for theirs, ours in step.outputs.items():
            spec = model.outputs.get(theirs) if model is not None else None
            forms[ours] = (
                None
                if spec is None or model is None
                else Form(spec.dtype, spec.dims, model.max_batch_size > 0)
            )
    return forms


def check_tensors(
    config: ModelConfig, rules: Rules, steps: Sequence[Step], forms: Mapping[str, Form | None]
) -> None:
    """Raise CoreError(INVALID) for unknown tensors, wrong datatypes and shapes, unused tensors and cycles."""
    reads: dict[int, set[str]] = {}
    used: set[str] = set()
    for index, choice in rules.choices.items():
        made = list(steps[index].outputs.values())
        reads[index] = _check_choice(rules, choice, made, forms)
    for loop in rules.loops:
        inside = [step for step in steps if loop.has(step.index)]
        made = [name for step in inside for name in step.outputs.values()]
        read = _check_choice(rules, loop.choice, made, forms)
        for index in range(loop.first, loop.last + 1):
            reads.setdefault(index, set()).update(read)
        if loop.again is not None:
            _check_expression(loop.again, forms)
            used.update(name.name for name in loop.again.names)
        _check_carry(rules, loop, made, forms)
        used.update(name for pair in loop.carry.items() for name in pair)
    check_flow(config, reads, used)


def _check_choice(
    rules: Rules, choice: Choice, made: Iterable[str], forms: Mapping[str, Form | None]
) -> set[str]:
    """Check the condition and the fallbacks of a step or loop that makes tensors; return what they read."""
    read = set(choice.fallbacks.values())
    if choice.condition is not None:
        _check_expression(choice.condition.expression, forms)
        read.update(name.name for name in choice.condition.expression.names)
    where = _where(rules, f"{choice.key}.else")
    for output, fallback in choice.fallbacks.items():
        _check_known(fallback, forms, where)
        if output not in made:
            text = (
                f"{where}: {choice.label} makes no '{output}'; it makes {', '.join(sorted(made))}"
            )
            raise invalid(text)
        _check_fits(fallback, output, forms, where)
    return read


def _check_carry(
    rules: Rules, loop: Loop, made: Sequence[str], forms: Mapping[str, Form | None]
) -> None:
    where = _where(rules, f"{loop.key}.carry")
    for new, old in loop.carry.items():
        for name in (new, old):
            _check_known(name, forms, where)
        if new not in made:
            raise invalid(
                f"{where}: no step of {loop.key} makes '{new}'; they make {', '.join(sorted(made))}"
            )
        if old in made:
            raise invalid(
                f"{where}: a step of {loop.key} makes '{old}' anew in each turn, so it cannot get the value "
                f"of '{new}'"
            )
        _check_fits(new, old, forms, where)


def _check_expression(expression: Expression, forms: Mapping[str, Form | None]) -> None:
    for name in expression.names:
        try:
            _check_known(name.name, forms, expression.where)
        except CoreError as error:
            text = f"{error.message}, at character {name.at + 1} of: {expression.text}"
            raise invalid(text) from None
    expression.check(forms)


def _check_known(name: str, forms: Mapping[str, Form | None], where: str) -> None:
    if name not in forms:
        near = did_you_mean(name, forms) or f"; there are {', '.join(forms)}"
        raise invalid(f"{where}: no input and no step makes '{name}'{near}")


def _check_fits(source: str, target: str, forms: Mapping[str, Form | None], where: str) -> None:
    """Raise CoreError(INVALID) unless a tensor may have the value of another one."""
    one, other = forms[source], forms[target]
    if one is None or other is None:
        return
    if one.dtype is not other.dtype:
        found = f"'{source}' is {one.dtype.name}, '{target}' is {other.dtype.name}"
    elif not _fits(one.dims, other.dims) and not _fits(one.shape, other.shape):
        found = f"'{source}' has shape {list(one.shape)}, '{target}' has {list(other.shape)}"
    else:
        return
    raise invalid(f"{where}: {found}; they must be equal")


def _fits(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    return len(one) == len(other) and all(
        a == b or -1 in (a, b) for a, b in zip(one, other, strict=True)
    )


def _where(rules: Rules, key: str) -> str:
    return f"in ensemble '{rules.ensemble}', parameter '{key}'"
