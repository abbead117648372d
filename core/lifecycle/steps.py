"""Checks that the steps of an ensemble fit the signatures of their models; core.config checks the rest."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

from core.config import InputSpec, OutputSpec, Signature
from core.errors import invalid
from core.pipeline.ensemble import Step


class _Seen(NamedTuple):
    """A model's declaration of an ensemble tensor; `dims` exclude the batch dimension."""

    model: str
    datatype: str
    dims: tuple[int, ...]
    batched: bool

    @property
    def shape(self) -> tuple[int, ...]:
        return (-1, *self.dims) if self.batched else self.dims


def check_steps(ensemble: Signature, steps: Sequence[Step], models: Sequence[Signature]) -> None:
    """Raise CoreError(INVALID) for the first step that does not fit its model or earlier steps.

    models   the signature of each step's model
    """
    pairs = list(zip(steps, models, strict=True))
    for step, model in pairs:
        _check_names(ensemble.name, step, model)
        if 0 < model.max_batch_size < ensemble.max_batch_size:
            raise invalid(
                f"ensemble '{ensemble.name}' allows maximum batch size {ensemble.max_batch_size}, "
                f"but it contains model '{model.name}' which only allows maximum batch size to be "
                f"{model.max_batch_size}"
            )
    seen: dict[str, _Seen] = {}
    for specs in (ensemble.inputs, ensemble.outputs):
        _compare(ensemble.name, seen, ensemble, specs, {name: name for name in specs})
    for step, model in pairs:
        _compare(ensemble.name, seen, model, model.inputs, step.inputs)
        _compare(ensemble.name, seen, model, model.outputs, step.outputs)
    for step in steps:
        if step.condition is not None:
            _check_condition(ensemble, step, seen[step.condition])
    _check_origins(ensemble, pairs)


def _check_names(ensemble: str, step: Step, model: Signature) -> None:
    """Raise CoreError(INVALID) unless a step maps only tensors of the model, and all its required inputs."""
    where = f"in ensemble '{ensemble}', {step}"
    for kind, mapped, known in (
        ("input", step.inputs, model.inputs),
        ("output", step.outputs, model.outputs),
    ):
        for name in mapped:
            if name not in known:
                there = ", ".join(known) or "none"
                raise invalid(f"{where}: the model has no {kind} '{name}'; it has {there}")
    needed = [spec.name for spec in model.inputs.values() if not spec.optional]
    if left_out := [name for name in needed if name not in step.inputs]:
        raise invalid(f"{where}: input_map leaves out {', '.join(left_out)}, which the model needs")


def _check_condition(ensemble: Signature, step: Step, seen: _Seen) -> None:
    """Raise CoreError(INVALID) unless a step's condition is BOOL and each of its dims is 1 or -1."""
    where = f"in ensemble '{ensemble.name}', {step}: the condition '{step.condition}'"
    if seen.datatype != "BOOL":
        raise invalid(f"{where} is {seen.datatype}, it must be BOOL")
    if any(size not in (1, -1) for size in seen.dims):
        raise invalid(
            f"{where} has shape {list(seen.shape)}, it must have one element for each "
            + ("row" if ensemble.max_batch_size > 0 else "request")
        )


def _compare(
    ensemble: str,
    seen: dict[str, _Seen],
    model: Signature,
    specs: Mapping[str, InputSpec | OutputSpec],
    names: Mapping[str, str],
) -> None:
    """Compare a model's tensors with those in `seen`; add new ones. Raises CoreError(INVALID) on a conflict.

    names   the model's tensor name → the ensemble's
    """
    for theirs, tensor in names.items():
        spec = specs[theirs]
        # A step's model gets client shapes; in the ensemble its own reshape is already applied.
        dims = _inner(spec) if model.name == ensemble else spec.dims
        new = _Seen(model.name, spec.dtype.name, dims, model.max_batch_size > 0)
        old = seen.setdefault(tensor, new)
        if old.datatype != new.datatype:
            what, was, found = "data type", old.datatype, new.datatype
        elif not _fits(old.dims, new.dims) and not _fits(old.shape, new.shape):
            what, was, found = "shape", str(list(old.shape)), str(list(new.shape))
        else:
            continue
        raise invalid(
            f"in ensemble '{ensemble}', ensemble tensor '{tensor}': inconsistent {what}: {was} is "
            f"inferred from model '{old.model}' while {found} is inferred from model '{new.model}'"
        )


def _inner(spec: InputSpec | OutputSpec) -> tuple[int, ...]:
    return spec.dims if spec.reshape is None else spec.reshape


def _fits(one: tuple[int, ...], other: tuple[int, ...]) -> bool:
    return len(one) == len(other) and all(
        a == b or -1 in (a, b) for a, b in zip(one, other, strict=True)
    )


def _check_origins(ensemble: Signature, pairs: Sequence[tuple[Step, Signature]]) -> None:
    """Raise CoreError(INVALID) for inputs that come from two decoupled steps: response counts may differ."""
    origins: dict[str, int | None] = {name: None for name in ensemble.inputs}
    waiting = list(pairs)
    while ready := [pair for pair in waiting if all(name in origins for name in pair[0].needs)]:
        for step, model in ready:
            waiting.remove((step, model))
            found = {origins[name] for name in step.needs} - {None}
            if len(found) > 1:
                raise invalid(
                    f"in ensemble '{ensemble.name}', step of model '{step.model}' receives inputs "
                    "originated from different decoupled models"
                )
            origin = step.index if model.decoupled else next(iter(found), None)
            origins.update((name, origin) for name in step.outputs.values())


def ranks_of(
    ensemble: Signature, steps: Sequence[Step], models: Sequence[Signature]
) -> dict[str, int] | None:
    """Set `ranks` of each step, and return the same for the ensemble's outputs.

    Each is name → rank with the batch dimension: of an input of the step's model, what the model takes; of an
    output of the ensemble, what clients get, before its `reshape`. Only for tensors where one of source and
    receiver batches, and the other does not. None stands for an empty table.
    """
    batched = {name: ensemble.max_batch_size > 0 for name in ensemble.inputs}
    for step, model in zip(steps, models, strict=True):
        batched.update((name, model.max_batch_size > 0) for name in step.outputs.values())
    for step, model in zip(steps, models, strict=True):
        batches = model.max_batch_size > 0
        step.ranks = {
            theirs: len(model.inputs[theirs].dims) + batches
            for theirs, ours in step.inputs.items()
            if batched[ours] != batches
        } or None
    batches = ensemble.max_batch_size > 0
    return {
        name: len(_inner(spec)) + batches
        for name, spec in ensemble.outputs.items()
        if batched[name] != batches
    } or None
