"""Check the steps of ensembles against the models of the tree, after these are checked."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from core.config import Signature
from core.config.validation.general import check_response_cache
from core.errors import CoreError, described
from core.lifecycle.ensemble import arrangement_of
from core.lifecycle.steps import check_steps
from core.pipeline.ensemble import Step, steps_of
from core.request import NEWEST
from frontends.commands.check.finding import Edit
from frontends.commands.check.mending import replace_value
from frontends.commands.check.model_check import CheckedModel
from frontends.commands.check.parsing import certain
from frontends.commands.check.places.paths import entry_at
from frontends.commands.check.settings import Place, one_line


def check_ensembles(models: Mapping[str, CheckedModel]) -> None:
    """Report what is wrong with the steps of all ensembles. Ensembles may call ensembles.

    An ensemble that calls a decoupled model becomes decoupled in its `config` and `signatures`.
    """
    done: set[str] = set()
    for name in sorted(models):
        _check(name, models, done, ())


def _check(
    name: str, models: Mapping[str, CheckedModel], done: set[str], above: tuple[str, ...]
) -> None:
    """Check the model `name` if it is an ensemble, after the ensembles that it calls.

    done    names of the ensembles that are checked already; gets those that are checked now
    above   ensembles that call it, outermost first
    """
    model = models[name]
    if model.config is None or not model.config.HasField("ensemble_scheduling"):
        return
    if name in above:
        way = " -> ".join([*above[above.index(name) :], name])
        place = Place(model.report, model.tree, model.config)
        text = f"circular dependency between ensembles: {way}"
        model.report.add(place.finding("error", "ensemble", text, "ensemble_scheduling"))
        return
    if name in done or len(above) > 100:
        return
    steps = model.config.ensemble_scheduling.step
    for called in dict.fromkeys(step.model_name for step in steps):
        if called in models:
            _check(called, models, done, (*above, name))
    done.add(name)
    try:
        _check_ensemble(model, models)
    except Exception as error:  # an ensemble that breaks the check must not hide the others
        text = f"the check of this ensemble ended early: {one_line(described(error))}"
        model.report.add(
            Place(model.report, model.tree, model.config).finding("error", "limit", text)
        )


def _check_ensemble(model: CheckedModel, models: Mapping[str, CheckedModel]) -> None:
    config = model.config
    assert config is not None
    place = Place(model.report, model.tree, config)
    if model.fails and not any(model.signatures.values()):
        return
    try:
        steps = steps_of(config)
    except CoreError:  # the rules of the configuration have reported it
        return
    found = [_signature(step, models, place) for step in steps]
    signature = next((each for each in model.signatures.values() if each is not None), None)
    if signature is None:
        return
    known = [(step, each) for step, each in zip(steps, found, strict=True) if each is not None]
    for step, each in known:
        _steps(signature, [_without_condition(step)], [each], place)
    try:
        arrangement_of(config, signature, steps, found)
    except CoreError as error:
        place.report.add(place.error(error, "ensemble"))
    if len(known) < len(steps):
        return
    _steps(signature, steps, [each for _, each in known], place)
    _note_unused(known, place)
    decoupled = any(each.decoupled for _, each in known)
    if decoupled:
        config.model_transaction_policy.decoupled = True
        for version in model.signatures:
            model.signatures[version] = replace(signature, decoupled=True)
    try:
        check_response_cache(config)
    except CoreError as error:
        place.report.add(place.error(error, "ensemble"))


def _steps(
    ensemble: Signature, steps: Sequence[Step], models: Sequence[Signature], place: Place
) -> None:
    try:
        check_steps(ensemble, steps, models)
    except CoreError as error:
        place.report.add(place.error(error, "ensemble", _near_tensor(error, steps, models, place)))


def _without_condition(step: Step) -> Step:
    return Step(step.index, step.model, step.version, step.inputs, step.outputs)


def _signature(step: Step, models: Mapping[str, CheckedModel], place: Place) -> Signature | None:
    """Return the signature of the version that a step calls; None if it is unknown.

    It is unknown if there is no such model, if the model's version policy does not select the version, if the
    model has errors or lies outside of the repository, and if only a load can tell it. Each is reported,
    except for an ensemble with errors that calls itself.
    """
    where = f"ensemble_scheduling.step[{step.index}].model_name"
    what = f"step {step.index}"
    if (called := models.get(step.model)) is None:
        near = certain(step.model, [each for each in models if each != place.report.name])
        meant = f"; did you mean '{near}'?" if near else f"; there are {_listed(models)}"
        entry, there = entry_at(place.tree, where)
        edit = replace_value(entry, f'"{near}"') if near and there and entry is not None else None
        text = f"{what} calls the model '{step.model}', which the repository lacks{meant}"
        place.report.add(place.finding("error", "ensemble", text, where, edit))
        return None
    if called.outside:
        text = f"{what}: only a load can tell the inputs and outputs of the model '{step.model}'"
        place.report.add(place.finding("note", "unchecked", text, where))
        return None
    version = step.version
    if version == NEWEST:
        version = max(called.versions, default=0)
    elif version not in called.versions:
        there_are = ", ".join(map(str, called.versions)) or "none"
        text = (
            f"{what} calls version {version} of '{step.model}', which its version policy does not select; it "
            f"selects {there_are}"
        )
        field = f"ensemble_scheduling.step[{step.index}].model_version"
        place.report.add(place.finding("error", "ensemble", text, field))
        return None
    if called.fails:
        if called.report is place.report:
            return None
        text = f"{what} calls the model '{step.model}', which has errors"
        place.report.add(place.finding("error", "ensemble", text, where))
        return None
    if (found := called.signatures.get(version)) is None:
        text = f"{what}: only a load can tell the inputs and outputs of the model '{step.model}'"
        place.report.add(place.finding("note", "unchecked", text, where))
    return found


def _listed(models: Mapping[str, CheckedModel]) -> str:
    names = sorted(models)
    return ", ".join(names if len(names) <= 20 else [*names[:20], "…"])


def _near_tensor(
    error: CoreError, steps: Sequence[Step], models: Sequence[Signature], place: Place
) -> Edit | None:
    """Return the edit for the misspelt name of a model's tensor that `error` is about.

    Return None with several steps, if it is about no such name, if no single name of the model is near, and
    if config.pbtxt has no place for the edit.
    """
    if len(steps) != 1:
        return None
    step, model = steps[0], models[0]
    for kind, mapped, known in (
        ("input", step.inputs, model.inputs),
        ("output", step.outputs, model.outputs),
    ):
        for name in mapped:
            near = certain(name, known.keys() - mapped.keys()) if name not in known else ""
            if not near or f"no {kind} '{name}'" not in error.message:
                continue
            where = f"ensemble_scheduling.step[{step.index}].{kind}_map['{name}']"
            entry, there = entry_at(place.tree, where)
            key = (
                next((e for e in (entry.fields or ()) if e.name == "key"), None) if entry else None
            )
            return replace_value(key, f'"{near}"') if there and key is not None else None
    return None


def _note_unused(known: Sequence[tuple[Step, Signature]], place: Place) -> None:
    for step, model in known:
        unused = [name for name in model.outputs if name not in step.outputs]
        if unused:
            text = (
                f"step {step.index}: the outputs {', '.join(unused)} of '{step.model}' are not used"
            )
            where = f"ensemble_scheduling.step[{step.index}].output_map"
            place.report.add(place.finding("note", "ensemble", text, where))
